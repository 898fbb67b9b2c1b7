#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "tasks/caption_metrics.h"

namespace hdetach::tasks {
namespace {

// Numbers for pairs of numbers, in the order of their first sight. Open addressing: every n-gram of
// every caption is looked up here.
class PairNumbers {
 public:
  uint32_t number(uint32_t first, uint32_t second) {
    if (2 * size_ >= slots_.size()) grow();
    const uint64_t key = uint64_t{first} << 32 | second;
    Slot& slot = find(key);
    if (slot.number == kFree) slot = {key, size_++};
    return slot.number;
  }
  uint32_t size() const { return size_; }

 private:
  static constexpr uint32_t kFree = ~uint32_t{0};
  struct Slot {
    uint64_t key = 0;
    uint32_t number = kFree;
  };

  Slot& find(uint64_t key) {
    // Fibonacci hashing: the high bits of the product depend on all bits of the key.
    size_t i = static_cast<size_t>((key ^ key >> 29) * 0x9E3779B97F4A7C15u >> shift_);
    while (slots_[i].number != kFree && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old) {
      if (slot.number != kFree) find(slot.key) = slot;
    }
  }

  uint32_t size_ = 0;
  int shift_ = 64 - 12;
  std::vector<Slot> slots_ = std::vector<Slot>(size_t{1} << 12);
};

class Counter {
 public:
  CountedCaption count(std::string_view caption) {
    CountedCaption counted;
    for (size_t begin = 0; begin < caption.size();) {
      const size_t end = std::min(caption.find(' ', begin), caption.size());
      if (end > begin) {
        const auto [entry, fresh] = words_.try_emplace(caption.substr(begin, end - begin),
                                                       static_cast<uint32_t>(words_.size()));
        counted.words.push_back(entry->second);
      }
      begin = end + 1;
    }
    // An n-gram is the one a word shorter at its start, and its last word.
    std::vector<uint32_t> numbers = counted.words;
    for (size_t n = 0; n < kLongestNgram; ++n) {
      if (n > 0) {
        for (size_t i = 0; i + n < counted.words.size(); ++i) {
          numbers[i] = longer_[n - 1].number(numbers[i], counted.words[i + n]);
        }
      }
      numbers.resize(counted.words.size() - std::min(counted.words.size(), n));
      counted.ngrams[n] = counts(numbers);
    }
    return counted;
  }

  std::array<uint32_t, kLongestNgram> distinct() const {
    return {static_cast<uint32_t>(words_.size()), longer_[0].size(), longer_[1].size(),
            longer_[2].size()};
  }

 private:
  std::vector<NgramCount> counts(const std::vector<uint32_t>& numbers) {
    sorted_ = numbers;
    std::sort(sorted_.begin(), sorted_.end());
    std::vector<NgramCount> counts;
    counts.reserve(sorted_.size());
    for (const uint32_t number : sorted_) {
      if (counts.empty() || counts.back().ngram != number) counts.push_back({number, 0});
      ++counts.back().count;
    }
    return counts;
  }

  std::unordered_map<std::string_view, uint32_t> words_;
  std::array<PairNumbers, kLongestNgram - 1> longer_;
  std::vector<uint32_t> sorted_;
};

}  // namespace

CountedCaptions count_ngrams(const std::vector<CaptionPair>& images) {
  Counter counter;
  CountedCaptions captions;
  captions.images.reserve(images.size());
  for (const CaptionPair& image : images) {
    CountedImage counted{image.image_id, counter.count(image.candidate), {}};
    counted.references.reserve(image.references.size());
    for (const std::string& reference : image.references) {
      counted.references.push_back(counter.count(reference));
    }
    captions.images.push_back(std::move(counted));
  }
  captions.distinct = counter.distinct();
  return captions;
}

}  // namespace hdetach::tasks
