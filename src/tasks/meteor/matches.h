// Every way in which words of a candidate can stand for words of a reference.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/caption_metrics_meteor.h"
#include "tasks/meteor/words.h"

namespace hdetach::meteor {

struct Match {
  int32_t start, size;                      // words of the reference
  int32_t candidate_start, candidate_size;  // words of the candidate
  int32_t module;                           // place in the list of modules
  int32_t credit;  // for the search: METEOR gives half a word for all but equal words, and drops
                   // the fraction of each side
};

// The words of a caption that are aligned.
struct Caption {
  const int32_t* words;
  int32_t size;
};

class Matches {
 public:
  Matches(const Words& words, const Paraphrases& paraphrases)
      : words_(words), table_(paraphrases) {}

  void find(Caption candidate, Caption reference, const std::vector<tasks::MeteorModule>& modules);

  int32_t reference_size() const { return static_cast<int32_t>(reference_cover_.size()); }
  int32_t candidate_size() const { return static_cast<int32_t>(candidate_cover_.size()); }

  // Those that start at a word of the reference, in METEOR's order, on which ties depend.
  const std::vector<Match>& at(int32_t position) const { return lists_[position]; }

  // Whether the list has a single match that shares no word with any other: it is always taken.
  bool is_certain(int32_t position) const;

 private:
  // A phrase of the table that a caption holds.
  struct Place {
    int32_t phrase, start, size;
  };
  struct Hit {
    int32_t line;  // of the table
    Place place;   // of the paraphrase
  };

  template <typename Equal>
  void find_words(Caption candidate, Caption reference, int32_t module, bool exact, Equal equal);
  void find_phrases(Caption candidate, Caption reference, int32_t module);
  void list_phrases(Caption caption, std::vector<Place>& places);
  template <typename Found>
  void find_paraphrases(const std::vector<Place>& places, const std::vector<Place>& others,
                        Found found);
  void add(Match match);

  const Words& words_;
  const Paraphrases& table_;
  std::vector<std::vector<Match>> lists_;  // by the place where they start; never shrinks
  std::vector<int32_t> reference_cover_, candidate_cover_;    // how many matches hold a word
  std::vector<int32_t> table_words_;                          // of a caption, numbered by table_
  std::vector<Place> reference_phrases_, candidate_phrases_;  // by start, then by size
  std::vector<Hit> hits_;
};

}  // namespace hdetach::meteor
