// METEOR's search for the best alignment: a beam that goes through the reference word by word.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/meteor/matches.h"

namespace hdetach::meteor {

class Aligner {
 public:
  // The matches chosen, in the order of the reference; valid until the next call. No two share a
  // word.
  const std::vector<Match>& align(const Matches& matches);

 private:
  // What paths are judged by: more credit, then fewer chunks, then less distance.
  struct Rank {
    int32_t credit = 0, chunks = 0;
    int64_t distance = 0;
    bool before(const Rank& other) const;
  };
  struct Path {
    Rank rank;
    int32_t next = 0;             // word of the reference after the last match
    int32_t candidate_next = -1;  // the candidate's, while the chunk is open; -1 when it is closed
    int32_t taken = -1;           // the last match, in taken_
  };
  struct Step {
    Rank rank;
    int32_t path;
    const Match* match;  // null: none
  };
  struct Taken {
    Match match;
    int32_t before;  // in taken_
  };

  void step(const Matches& matches, int32_t position);
  void offer(const Step& step);
  Rank extend(const Path& path, const Match& match) const;
  bool is_free(size_t path, const Match& match) const;
  void advance(int32_t position);

  std::vector<Path> paths_, next_paths_;    // [beam], best first
  std::vector<uint64_t> used_, next_used_;  // [beam, used_words_], a bit for each candidate word
  size_t used_words_ = 0;
  std::vector<Step> steps_;  // [beam], best first
  std::vector<Taken> taken_;
  std::vector<Match> chosen_;
};

}  // namespace hdetach::meteor
