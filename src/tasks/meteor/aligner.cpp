#include "tasks/meteor/aligner.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace hdetach::meteor {
namespace {

constexpr size_t kBeam = 40;

}  // namespace

bool Aligner::Rank::before(const Rank& other) const {
  return std::tie(other.credit, chunks, distance) < std::tie(credit, other.chunks, other.distance);
}

// Keeps the best steps. Equals stay in the order in which they come, as METEOR's sort leaves them.
void Aligner::offer(const Step& step) {
  if (steps_.size() == kBeam) {
    if (!step.rank.before(steps_.back().rank)) return;
    steps_.pop_back();
  }
  steps_.push_back(step);
  for (size_t i = steps_.size() - 1; i > 0 && step.rank.before(steps_[i - 1].rank); --i) {
    std::swap(steps_[i], steps_[i - 1]);
  }
}

// A match that does not go on where the last one ended closes a chunk. Its distance is for the
// caller to add.
Aligner::Rank Aligner::extend(const Path& path, const Match& match) const {
  Rank rank = path.rank;
  rank.credit += match.credit;
  rank.chunks += path.candidate_next >= 0 && match.candidate_start != path.candidate_next;
  return rank;
}

bool Aligner::is_free(size_t path, const Match& match) const {
  const uint64_t* used = &used_[path * used_words_];
  for (int32_t i = match.candidate_start; i < match.candidate_start + match.candidate_size; ++i) {
    if (used[i / 64] >> (i % 64) & 1) return false;
  }
  return true;
}

// From every path, what can follow at this word of the reference. Matches that share a word of the
// reference need no test: a path comes to a word only after its last match.
void Aligner::step(const Matches& matches, int32_t position) {
  steps_.clear();
  const std::vector<Match>& list = matches.at(position);
  const bool certain = matches.is_certain(position);
  for (size_t p = 0; p < paths_.size(); ++p) {
    const Path& path = paths_[p];
    const auto number = static_cast<int32_t>(p);
    if (position < path.next) {  // within its last match
      offer({path.rank, number, nullptr});
      continue;
    }
    // METEOR books the distance of a match on the path it comes from, not on the one that takes it,
    // unless it is certain: the matches after it and the path that takes none inherit it.
    int64_t distance = path.rank.distance;
    for (const Match& match : list) {
      if (!certain && !is_free(p, match)) continue;
      const int64_t own = std::abs(match.start - match.candidate_start);
      Rank rank = extend(path, match);
      rank.distance = certain ? distance + own : distance;
      distance += own;
      offer({rank, number, &match});
    }
    if (certain) continue;
    Rank none = path.rank;
    none.chunks += path.candidate_next >= 0;
    none.distance = distance;
    offer({none, number, nullptr});
  }
}

// The best steps become the paths.
void Aligner::advance(int32_t position) {
  next_paths_.clear();
  next_used_.resize(steps_.size() * used_words_);
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    Path path = paths_[step.path];
    uint64_t* used = next_used_.data() + s * used_words_;
    std::copy_n(&used_[step.path * used_words_], used_words_, used);
    path.rank = step.rank;
    if (step.match != nullptr) {
      const Match& match = *step.match;
      path.next = match.start + match.size;
      path.candidate_next = match.candidate_start + match.candidate_size;
      for (int32_t i = match.candidate_start; i < path.candidate_next; ++i) {
        used[i / 64] |= uint64_t{1} << (i % 64);
      }
      taken_.push_back({match, path.taken});
      path.taken = static_cast<int32_t>(taken_.size()) - 1;
    } else if (position >= path.next) {
      path.candidate_next = -1;
    }
    next_paths_.push_back(path);
  }
  std::swap(paths_, next_paths_);
  std::swap(used_, next_used_);
}

const std::vector<Match>& Aligner::align(const Matches& matches) {
  taken_.clear();
  chosen_.clear();
  used_words_ = static_cast<size_t>(matches.candidate_size()) / 64 + 1;
  used_.assign(used_words_, 0);
  paths_.assign(1, Path());
  for (int32_t j = 0; j < matches.reference_size(); ++j) {
    step(matches, j);
    advance(j);
  }
  for (Path& path : paths_) path.rank.chunks += path.candidate_next >= 0;
  const auto best =
      std::min_element(paths_.begin(), paths_.end(),
                       [](const Path& a, const Path& b) { return a.rank.before(b.rank); });
  for (int32_t t = best->taken; t >= 0; t = taken_[t].before) chosen_.push_back(taken_[t].match);
  std::reverse(chosen_.begin(), chosen_.end());
  return chosen_;
}

}  // namespace hdetach::meteor
