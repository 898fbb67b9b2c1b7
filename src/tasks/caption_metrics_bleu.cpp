#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tasks/caption_metrics.h"

namespace hdetach::tasks {
namespace {

// Added above and below, so that nothing divided by nothing is nothing.
constexpr double kTiny = 1e-15, kSmall = 1e-9;

using Scores = std::array<double, kLongestNgram>;
using Counts = std::array<int64_t, kLongestNgram>;

Scores scores(int64_t candidate_words, int64_t reference_words, const Counts& guessed,
              const Counts& correct) {
  const double ratio = (static_cast<double>(candidate_words) + kTiny) /
                       (static_cast<double>(reference_words) + kSmall);
  const double penalty = ratio < 1 ? std::exp(1 - 1 / ratio) : 1;
  Scores result{};
  double product = 1;
  for (size_t n = 0; n < kLongestNgram; ++n) {
    product *=
        (static_cast<double>(correct[n]) + kTiny) / (static_cast<double>(guessed[n]) + kSmall);
    result[n] = std::pow(product, 1.0 / static_cast<double>(n + 1)) * penalty;
  }
  return result;
}

// The length nearest to the candidate's; of two, the shorter.
int64_t nearest_length(const CountedImage& image) {
  const auto words = static_cast<int64_t>(image.candidate.words.size());
  const auto distance = [words](int64_t length) { return std::abs(length - words); };
  auto nearest = static_cast<int64_t>(image.references.front().words.size());
  for (const CountedCaption& reference : image.references) {
    const auto length = static_cast<int64_t>(reference.words.size());
    if (distance(length) < distance(nearest) ||
        (distance(length) == distance(nearest) && length < nearest)) {
      nearest = length;
    }
  }
  return nearest;
}

// How many n-grams of the candidate a reference has, each at most as often as that reference.
int64_t clipped_count(const CountedImage& image, size_t n, std::vector<uint32_t>& most) {
  const std::vector<NgramCount>& candidate = image.candidate.ngrams[n];
  most.assign(candidate.size(), 0);
  for (const CountedCaption& reference : image.references) {
    auto theirs = reference.ngrams[n].begin();
    const auto end = reference.ngrams[n].end();
    for (size_t i = 0; i < candidate.size() && theirs != end; ++i) {
      while (theirs != end && theirs->ngram < candidate[i].ngram) ++theirs;
      if (theirs != end && theirs->ngram == candidate[i].ngram) {
        most[i] = std::max(most[i], theirs->count);
      }
    }
  }
  int64_t count = 0;
  for (size_t i = 0; i < candidate.size(); ++i) count += std::min(most[i], candidate[i].count);
  return count;
}

}  // namespace

BleuScore bleu(const CountedCaptions& captions) {
  BleuScore score;
  std::vector<uint32_t> most;
  for (const CountedImage& image : captions.images) {
    const auto words = static_cast<int64_t>(image.candidate.words.size());
    const int64_t length = nearest_length(image);
    Counts guessed{}, correct{};
    for (size_t n = 0; n < kLongestNgram; ++n) {
      guessed[n] = std::max<int64_t>(words - static_cast<int64_t>(n), 0);
      correct[n] = clipped_count(image, n, most);
      score.guessed[n] += guessed[n];
      score.correct[n] += correct[n];
    }
    score.candidate_words += words;
    score.reference_words += length;
    score.per_image.push_back(scores(words, length, guessed, correct));
  }
  score.corpus = scores(score.candidate_words, score.reference_words, score.guessed, score.correct);
  return score;
}

}  // namespace hdetach::tasks
