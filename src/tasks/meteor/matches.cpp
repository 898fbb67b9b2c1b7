#include "tasks/meteor/matches.h"

#include <algorithm>
#include <utility>

namespace hdetach::meteor {

using tasks::MeteorModule;

void Matches::add(Match match) {
  lists_[match.start].push_back(match);
  for (int32_t i = 0; i < match.size; ++i) ++reference_cover_[match.start + i];
  for (int32_t i = 0; i < match.candidate_size; ++i) ++candidate_cover_[match.candidate_start + i];
}

template <typename Equal>
void Matches::find_words(Caption candidate, Caption reference, int32_t module, bool exact,
                         Equal equal) {
  for (int32_t j = 0; j < reference.size; ++j) {
    for (int32_t i = 0; i < candidate.size; ++i) {
      if (equal(candidate.words[i], reference.words[j])) add({j, 1, i, 1, module, exact ? 2 : 0});
    }
  }
}

void Matches::list_phrases(Caption caption, std::vector<Place>& places) {
  places.clear();
  table_words_.resize(caption.size);
  for (int32_t i = 0; i < caption.size; ++i) {
    table_words_[i] = words_.paraphrase_word(caption.words[i]);
  }
  for (int32_t i = 0; i < caption.size; ++i) {
    const int32_t most = std::min(table_.longest(), caption.size - i);
    for (int32_t n = 1; n <= most && table_words_[i + n - 1] >= 0; ++n) {
      const int32_t phrase = table_.phrase(&table_words_[i], n);
      if (phrase >= 0) places.push_back({phrase, i, n});
    }
  }
}

// Calls found(phrase's place, paraphrase's place): by the phrase's place, then by line of the
// table, then by where the paraphrase starts. Lists are long and captions short, so that what the
// captions hold is sought in the lists.
template <typename Found>
void Matches::find_paraphrases(const std::vector<Place>& places, const std::vector<Place>& others,
                               Found found) {
  for (const Place& place : places) {
    const Paraphrases::List list = table_.of(place.phrase);
    if (list.first == list.last) continue;
    hits_.clear();
    for (const Place& other : others) {
      const Paraphrases::Entry* entry = std::lower_bound(
          list.first, list.last, other.phrase,
          [](const Paraphrases::Entry& e, int32_t phrase) { return e.paraphrase < phrase; });
      for (; entry != list.last && entry->paraphrase == other.phrase; ++entry) {
        hits_.push_back({entry->line, other});
      }
    }
    std::sort(hits_.begin(), hits_.end(), [](const Hit& a, const Hit& b) {
      return std::pair(a.line, a.place.start) < std::pair(b.line, b.place.start);
    });
    for (const Hit& hit : hits_) found(place, hit.place);
  }
}

// Either caption may hold the phrase and the other one its paraphrase. A pair that the table has in
// both directions matches twice.
void Matches::find_phrases(Caption candidate, Caption reference, int32_t module) {
  list_phrases(candidate, candidate_phrases_);
  list_phrases(reference, reference_phrases_);
  const auto match = [&](const Place& in_reference, const Place& in_candidate) {
    add({in_reference.start, in_reference.size, in_candidate.start, in_candidate.size, module,
         in_reference.size / 2 + in_candidate.size / 2});
  };
  find_paraphrases(reference_phrases_, candidate_phrases_, match);
  find_paraphrases(candidate_phrases_, reference_phrases_,
                   [&](const Place& phrase, const Place& other) { match(other, phrase); });
}

void Matches::find(Caption candidate, Caption reference, const std::vector<MeteorModule>& modules) {
  lists_.resize(std::max(lists_.size(), static_cast<size_t>(reference.size)));
  for (int32_t j = 0; j < reference.size; ++j) lists_[j].clear();
  candidate_cover_.assign(candidate.size, 0);
  reference_cover_.assign(reference.size, 0);
  // Captions that are the same need the first module only; the search could go astray with more.
  const bool same = std::equal(candidate.words, candidate.words + candidate.size, reference.words,
                               reference.words + reference.size);
  const auto used = static_cast<int32_t>(same ? 1 : modules.size());
  for (int32_t m = 0; m < used; ++m) {
    switch (modules[m]) {
      case MeteorModule::kExact:
        find_words(candidate, reference, m, true, [](int32_t a, int32_t b) { return a == b; });
        break;
      case MeteorModule::kStem:
        find_words(candidate, reference, m, false,
                   [&](int32_t a, int32_t b) { return a != b && words_.same_stem(a, b); });
        break;
      case MeteorModule::kSynonym:
        find_words(candidate, reference, m, false,
                   [&](int32_t a, int32_t b) { return a != b && words_.are_synonyms(a, b); });
        break;
      case MeteorModule::kParaphrase:
        if (!table_.empty()) find_phrases(candidate, reference, m);
        break;
    }
  }
}

bool Matches::is_certain(int32_t position) const {
  if (lists_[position].size() != 1) return false;
  const Match& match = lists_[position][0];
  const auto alone = [](int32_t count) { return count == 1; };
  const auto reference = reference_cover_.begin() + match.start;
  const auto candidate = candidate_cover_.begin() + match.candidate_start;
  return std::all_of(reference, reference + match.size, alone) &&
         std::all_of(candidate, candidate + match.candidate_size, alone);
}

}  // namespace hdetach::meteor
