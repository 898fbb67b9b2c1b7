#include "tasks/meteor/words.h"

#include "tasks/meteor/lines.h"

namespace hdetach::meteor {

std::vector<int32_t> Words::add(std::string_view caption) {
  std::vector<int32_t> numbers;
  for (std::string_view word; !(word = take_word(caption)).empty();) {
    const auto found = numbers_.find(word);
    numbers.push_back(found != numbers_.end() ? found->second : add_word(word));
  }
  return numbers;
}

int32_t Words::add_word(std::string_view text) {
  const std::string& kept = texts_.emplace_back(text);
  const auto number = static_cast<int32_t>(words_.size());
  numbers_.emplace(kept, number);
  Word word;
  word.function = resources_.function_words.count(kept) > 0;
  if (lookups_.stems) {
    const auto next = static_cast<int32_t>(stems_.size());
    word.stem = stems_.try_emplace(stemmer_.stem(kept), next).first->second;
  }
  if (lookups_.paraphrases) word.paraphrase = resources_.paraphrases.word(kept);
  word.synsets = synsets_.size();
  if (lookups_.synonyms) {
    for (const int32_t synset : resources_.synonyms.synsets(kept)) {
      synsets_.push_back(synset);
      word.synset_bits |= uint64_t{1} << (synset % 61);
    }
  }
  word.synsets_end = synsets_.size();
  words_.push_back(word);
  return number;
}

bool Words::are_synonyms(int32_t a, int32_t b) const {
  const Word &x = words_[a], &y = words_[b];
  if ((x.synset_bits & y.synset_bits) == 0) return false;
  for (size_t i = x.synsets, k = y.synsets; i < x.synsets_end && k < y.synsets_end;) {
    if (synsets_[i] == synsets_[k]) return true;
    synsets_[i] < synsets_[k] ? ++i : ++k;
  }
  return false;
}

}  // namespace hdetach::meteor
