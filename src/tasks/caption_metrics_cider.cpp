#include <cmath>
#include <numeric>

#include "tasks/caption_metrics.h"

namespace hdetach::tasks {
namespace {

constexpr double kSigma = 6;   // words of difference in length that cost a factor of e^-1/2
constexpr double kScale = 10;  // coco-caption's, so that scores are of the size of one

using Weights = std::array<std::vector<double>, kLongestNgram>;  // [n][n-gram]

// The logarithm of images over images that have the n-gram in a reference; those that no reference
// has count as if one had.
Weights inverse_document_frequencies(const CountedCaptions& captions) {
  const double all = std::log(static_cast<double>(captions.images.size()));
  Weights weights;
  for (size_t n = 0; n < kLongestNgram; ++n) {
    std::vector<uint32_t> images(captions.distinct[n], 0), last(captions.distinct[n], 0);
    uint32_t image_number = 0;
    for (const CountedImage& image : captions.images) {
      ++image_number;
      for (const CountedCaption& reference : image.references) {
        for (const NgramCount& entry : reference.ngrams[n]) {
          if (last[entry.ngram] == image_number) continue;
          last[entry.ngram] = image_number;
          ++images[entry.ngram];
        }
      }
    }
    weights[n].reserve(images.size());
    for (const uint32_t count : images) {
      weights[n].push_back(all - std::log(static_cast<double>(count > 0 ? count : 1)));
    }
  }
  return weights;
}

double norm(const std::vector<NgramCount>& counts, const std::vector<double>& weights) {
  double sum = 0;
  for (const NgramCount& entry : counts) {
    const double value = entry.count * weights[entry.ngram];
    sum += value * value;
  }
  return std::sqrt(sum);
}

// Products of the two vectors: with the candidate's values as they are, and cut to the reference's.
struct Products {
  double plain = 0, clipped = 0;
};

Products products(const std::vector<NgramCount>& candidate,
                  const std::vector<NgramCount>& reference, const std::vector<double>& weights) {
  Products sums;
  auto theirs = reference.begin();
  for (const NgramCount& ours : candidate) {
    while (theirs != reference.end() && theirs->ngram < ours.ngram) ++theirs;
    if (theirs == reference.end()) break;
    if (theirs->ngram != ours.ngram) continue;
    const double weight = weights[ours.ngram];
    const double value = theirs->count * weight;
    sums.plain += ours.count * weight * value;
    sums.clipped += std::min(ours.count, theirs->count) * weight * value;
  }
  return sums;
}

// coco-caption counts bigrams where it means words: a caption of one word is as long as none.
double length(const CountedCaption& caption) {
  return caption.words.empty() ? 0 : static_cast<double>(caption.words.size() - 1);
}

struct ImageScore {
  double cider_d = 0, plain = 0;
};

ImageScore score(const CountedImage& image, const Weights& weights) {
  std::array<double, kLongestNgram> norms;
  for (size_t n = 0; n < kLongestNgram; ++n) {
    norms[n] = norm(image.candidate.ngrams[n], weights[n]);
  }
  ImageScore sum;
  for (const CountedCaption& reference : image.references) {
    const double difference = length(image.candidate) - length(reference);
    const double penalty = std::exp(-difference * difference / (2 * kSigma * kSigma));
    for (size_t n = 0; n < kLongestNgram; ++n) {
      const double both = norms[n] * norm(reference.ngrams[n], weights[n]);
      if (both == 0) continue;
      const Products p = products(image.candidate.ngrams[n], reference.ngrams[n], weights[n]);
      sum.cider_d += p.clipped / both * penalty;
      sum.plain += p.plain / both;
    }
  }
  const double scale = kScale / kLongestNgram / static_cast<double>(image.references.size());
  return {sum.cider_d * scale, sum.plain * scale};
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

CiderScore cider(const CountedCaptions& captions) {
  const Weights weights = inverse_document_frequencies(captions);
  CiderScore result;
  for (const CountedImage& image : captions.images) {
    const ImageScore scores = score(image, weights);
    result.cider_d.per_image.push_back(scores.cider_d);
    result.plain.per_image.push_back(scores.plain);
  }
  result.cider_d.corpus = mean(result.cider_d.per_image);
  result.plain.corpus = mean(result.plain.per_image);
  return result;
}

}  // namespace hdetach::tasks
