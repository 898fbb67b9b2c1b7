#include "tasks/meteor/paraphrases.h"

#include <algorithm>
#include <utility>

#include "tasks/meteor/lines.h"

namespace hdetach::meteor {

int32_t Paraphrases::word(std::string_view word) const {
  const auto found = words_.find(std::string(word));
  return found == words_.end() ? -1 : found->second;
}

int32_t Paraphrases::phrase(const int32_t* words, int32_t size) const {
  return slots_.empty() ? -1 : slots_[slot(words, size)];
}

size_t Paraphrases::slot(const int32_t* words, int32_t size) const {
  uint64_t hash = 0;
  for (int32_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<uint32_t>(words[i])) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots_[i] < 0) return i;
    const int32_t *begin = pool_.data() + begins_[slots_[i]],
                  *end = pool_.data() + begins_[slots_[i] + 1];
    if (std::equal(words, words + size, begin, end)) return i;
  }
}

// Twice the slots, a power of two; never more than half of them are taken.
void Paraphrases::grow() {
  slots_.assign(std::max<size_t>(2 * slots_.size(), 1024), -1);
  for (size_t i = 0; i + 1 < begins_.size(); ++i) {
    const auto size = static_cast<int32_t>(begins_[i + 1] - begins_[i]);
    slots_[slot(&pool_[begins_[i]], size)] = static_cast<int32_t>(i);
  }
}

int32_t Paraphrases::take(std::string_view line) {
  const size_t begin = pool_.size();
  for (std::string_view word; !(word = take_word(line)).empty();) {
    const auto next = static_cast<int32_t>(words_.size());
    pool_.push_back(words_.try_emplace(std::string(word), next).first->second);
  }
  if (pool_.size() == begin) return -1;
  const auto size = static_cast<int32_t>(pool_.size() - begin);
  const size_t place = slot(&pool_[begin], size);
  if (slots_[place] >= 0) {
    pool_.resize(begin);
    return slots_[place];
  }
  const auto number = static_cast<int32_t>(begins_.size() - 1);
  slots_[place] = number;
  begins_.push_back(pool_.size());
  longest_ = std::max(longest_, size);
  if (begins_.size() > slots_.size() / 2) grow();
  return number;
}

void Paraphrases::read(std::string_view text, const std::string& name) {
  grow();
  std::vector<std::pair<int32_t, int32_t>> pairs;
  Lines lines(text, name);
  for (std::string_view probability, line; lines.next(probability);) {
    auto& [phrase, paraphrase] = pairs.emplace_back();
    for (int32_t* number : {&phrase, &paraphrase}) {
      if (!lines.next(line)) lines.fail("the file ends within a pair of phrases");
      *number = take(line);
      if (*number < 0) lines.fail("a phrase without a word");
    }
  }
  // By phrase: lists_[p + 1] runs from where the list of p begins to where it ends.
  lists_.assign(begins_.size() + 1, 0);
  for (const auto& pair : pairs) ++lists_[pair.first + 2];
  for (size_t i = 2; i < lists_.size(); ++i) lists_[i] += lists_[i - 1];
  entries_.resize(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    entries_[lists_[pairs[i].first + 1]++] = {pairs[i].second, static_cast<int32_t>(i)};
  }
  for (size_t p = 0; p + 1 < begins_.size(); ++p) {
    std::sort(entries_.data() + lists_[p], entries_.data() + lists_[p + 1],
              [](const Entry& a, const Entry& b) {
                return std::pair(a.paraphrase, a.line) < std::pair(b.paraphrase, b.line);
              });
  }
}

}  // namespace hdetach::meteor
