#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "tasks/caption_metrics.h"
#include "tasks/side_by_side.h"

namespace hdetach::tasks {
namespace {

constexpr double kBeta = 1.2;        // how much more recall counts than precision
constexpr double kMostPairs = 4e10;  // words of one caption times words of the other; 2 s

using Words = std::vector<uint32_t>;

// The length of the longest common subsequence, 64 words of the shorter caption at a time. A bit of
// `row` is zero where the length grows by one; a step to the next word of the longer caption is an
// addition, whose carry goes on to the next 64 words.
class CommonSubsequence {
 public:
  explicit CommonSubsequence(size_t distinct) : places_(distinct, 0) {}

  int64_t length(const Words& a, const Words& b) {
    const Words& across = a.size() < b.size() ? a : b;
    const Words& down = a.size() < b.size() ? b : a;
    carry_.assign(down.size(), 0);
    int64_t length = 0;
    for (size_t begin = 0; begin < across.size(); begin += 64) {
      const size_t end = std::min(begin + 64, across.size());
      for (size_t i = begin; i < end; ++i) places_[across[i]] |= uint64_t{1} << (i - begin);
      uint64_t row = ~uint64_t{0};
      for (size_t j = 0; j < down.size(); ++j) {
        const uint64_t matches = row & places_[down[j]];
        uint64_t sum = row + matches;
        uint64_t carry = sum < row;
        sum += carry_[j];
        carry |= sum < carry_[j];
        carry_[j] = static_cast<uint8_t>(carry);
        row = sum | (row & ~matches);
      }
      for (size_t i = begin; i < end; ++i) {
        length += ~row >> (i - begin) & 1;
        places_[across[i]] = 0;
      }
    }
    return length;
  }

 private:
  std::vector<uint64_t> places_;  // [words of the set], bits of the 64 at hand
  std::vector<uint8_t> carry_;    // [words of the longer caption]
};

void check_size(const CountedImage& image) {
  const auto candidate = static_cast<double>(image.candidate.words.size());
  for (const CountedCaption& reference : image.references) {
    if (candidate * static_cast<double>(reference.words.size()) <= kMostPairs) continue;
    throw std::runtime_error("image " + std::to_string(image.image_id) + ": a candidate of " +
                             std::to_string(image.candidate.words.size()) +
                             " words and a reference of " + std::to_string(reference.words.size()) +
                             " are too long to compare; shorten one");
  }
}

// coco-caption finds one word in an empty caption, the empty one: two empty captions are equal.
double share(int64_t common, const Words& words) {
  return static_cast<double>(common) / static_cast<double>(std::max<size_t>(words.size(), 1));
}

double score(const CountedImage& image, CommonSubsequence& subsequence) {
  check_size(image);
  const Words& candidate = image.candidate.words;
  double precision = 0, recall = 0;  // each of the reference that is best for it
  for (const CountedCaption& reference : image.references) {
    const bool both_empty = candidate.empty() && reference.words.empty();
    const int64_t common = both_empty ? 1 : subsequence.length(candidate, reference.words);
    precision = std::max(precision, share(common, candidate));
    recall = std::max(recall, share(common, reference.words));
  }
  if (precision == 0 || recall == 0) return 0;
  return (1 + kBeta * kBeta) * precision * recall / (recall + kBeta * kBeta * precision);
}

}  // namespace

MeanScore rouge_l(const CountedCaptions& captions, int threads) {
  MeanScore result;
  result.per_image.resize(captions.images.size());
  side_by_side(captions.images.size(), threads, [&](size_t begin, size_t end) {
    CommonSubsequence subsequence(captions.distinct[0]);
    for (size_t i = begin; i < end; ++i) {
      result.per_image[i] = score(captions.images[i], subsequence);
    }
  });
  result.corpus = std::accumulate(result.per_image.begin(), result.per_image.end(), 0.0) /
                  static_cast<double>(result.per_image.size());
  return result;
}

}  // namespace hdetach::tasks
