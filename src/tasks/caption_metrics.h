// How captions are judged: BLEU, ROUGE-L and CIDEr, as the COCO caption evaluation
// (github.com/tylin/coco-caption) computes them. METEOR has its own header.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hdetach::tasks {

// One image: what was said of it, and what people say of it. Tokenised captions (see
// ptb_tokenizer.h): words joined by single spaces. An empty string has no word.
struct CaptionPair {
  int64_t image_id = 0;
  std::string candidate;
  std::vector<std::string> references;  // one at least
};

// The captions of a set of images as numbers, counted once for all metrics.
constexpr int kLongestNgram = 4;

struct NgramCount {
  uint32_t ngram;  // its number among those of its length in the set
  uint32_t count;
};

struct CountedCaption {
  std::vector<uint32_t> words;                                  // numbers of the unigrams
  std::array<std::vector<NgramCount>, kLongestNgram> ngrams{};  // of 1 to 4 words, by number
};

struct CountedImage {
  int64_t image_id = 0;
  CountedCaption candidate;
  std::vector<CountedCaption> references;
};

struct CountedCaptions {
  std::vector<CountedImage> images;
  std::array<uint32_t, kLongestNgram> distinct{};  // n-grams of 1 to 4 words
};

CountedCaptions count_ngrams(const std::vector<CaptionPair>& images);

// BLEU-1 to BLEU-4: n-grams of the candidate that a reference has too, with the geometric mean over
// lengths up to n and a penalty for candidates shorter than the references nearest in length.
struct BleuScore {
  int64_t candidate_words = 0, reference_words = 0;
  std::array<int64_t, kLongestNgram> guessed{}, correct{};  // n-grams of the candidates
  std::array<double, kLongestNgram> corpus{};               // of these sums
  std::vector<std::array<double, kLongestNgram>> per_image;
};
BleuScore bleu(const CountedCaptions& captions);

// A score that the set has on average.
struct MeanScore {
  double corpus = 0;
  std::vector<double> per_image;
};

// ROUGE-L: the longest common subsequence, as a share of either caption. Throws std::runtime_error,
// naming the image, where two captions are too long to be compared within seconds.
MeanScore rouge_l(const CountedCaptions& captions, int threads);

// CIDEr: how alike candidate and reference are as vectors of n-grams, each weighed by how few of
// the images have it in their references. The set of images is thus part of every score.
struct CiderScore {
  // What coco-caption calls CIDEr. It is the paper's CIDEr-D: counts beyond the reference's do not
  // help, and another length than the reference's is punished.
  MeanScore cider_d;
  MeanScore plain;  // the paper's CIDEr, without either
};
CiderScore cider(const CountedCaptions& captions);

}  // namespace hdetach::tasks
