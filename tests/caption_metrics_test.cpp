// BLEU, ROUGE-L and CIDEr: small cases by hand, and coco-caption's own numbers for its example.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "formats/files.h"
#include "program.h"
#include "tasks/caption_metrics.h"
#include "tasks/caption_pairs.h"
#include "tasks/ptb_tokenizer.h"

namespace {

using namespace hdetach::tasks;
namespace fs = std::filesystem;

// coco-caption adds 1e-9 to what it divides by.
constexpr double kSmallConstant = 1e-8;

double rouge_of(const std::string& candidate, const std::vector<std::string>& references) {
  return rouge_l(count_ngrams({{1, candidate, references}}), 1).corpus;
}

TEST(Bleu, CountsEachNgramAtMostAsOftenAsOneReferenceHasIt) {
  // "the" three times, twice in a reference; "the the" and "the cat" once each. Both references
  // are one word off in length: the shorter counts, which is shorter than the candidate.
  const BleuScore score =
      bleu(count_ngrams({{1, "the the the cat", {"the cat sat", "the the dog runs far"}}}));
  EXPECT_EQ(score.candidate_words, 4);
  EXPECT_EQ(score.reference_words, 3);
  EXPECT_EQ(score.guessed, (std::array<int64_t, 4>{4, 3, 2, 1}));
  EXPECT_EQ(score.correct, (std::array<int64_t, 4>{3, 2, 0, 0}));
  EXPECT_NEAR(score.corpus[0], 0.75, kSmallConstant);
  EXPECT_NEAR(score.corpus[1], std::sqrt(0.75 * 2 / 3), kSmallConstant);
  EXPECT_NEAR(score.corpus[2], std::cbrt(0.5 * 1e-15 / 2), 1e-12);
  EXPECT_EQ(score.corpus, score.per_image[0]);
}

TEST(Bleu, PunishesShortCandidatesAndSumsOverTheSet) {
  const BleuScore score =
      bleu(count_ngrams({{1, "a b", {"a b c d", "a b c d e"}}, {2, "x y z w", {"x y z w"}}}));
  EXPECT_EQ(score.candidate_words, 6);
  EXPECT_EQ(score.reference_words, 8);
  EXPECT_EQ(score.correct, (std::array<int64_t, 4>{6, 4, 2, 1}));
  EXPECT_NEAR(score.per_image[0][0], std::exp(1 - 4.0 / 2), kSmallConstant);
  EXPECT_NEAR(score.per_image[1][3], 1, kSmallConstant);
  EXPECT_NEAR(score.corpus[0], std::exp(1 - 8.0 / 6), kSmallConstant);
}

TEST(Bleu, AnEmptyCandidateScoresNothing) {
  const BleuScore score = bleu(count_ngrams({{1, "", {"a b"}}, {2, "", {""}}}));
  for (const double value : score.corpus) EXPECT_EQ(value, 0);
  for (const double value : score.per_image[1]) EXPECT_EQ(value, 0);
}

TEST(Rouge, TakesTheBestPrecisionAndTheBestRecall) {
  // "a c d": 3/4 and 3/5; "b": 1/4 and 1/1. The two need not be of one reference.
  const double b2 = 1.2 * 1.2, p = 3.0 / 4, r = 1;
  EXPECT_DOUBLE_EQ(rouge_of("a b c d", {"a c d e f", "b"}), (1 + b2) * p * r / (r + b2 * p));
  EXPECT_DOUBLE_EQ(rouge_of("a b", {"a b"}), 1);
  EXPECT_EQ(rouge_of("a b", {"c"}), 0);
}

TEST(Rouge, AnEmptyCaptionHasOneWordTheEmptyOne) {
  EXPECT_EQ(rouge_of("", {"a"}), 0);
  EXPECT_EQ(rouge_of("a", {""}), 0);
  EXPECT_DOUBLE_EQ(rouge_of("", {"a", ""}), 1);
}

// Sequences around 64 words and its multiples, against the plain table.
TEST(Rouge, LongCaptionsAgreeWithTheTableOfLengths) {
  std::mt19937 generator(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int> texts[2];
    std::string captions[2];
    for (int side = 0; side < 2; ++side) {
      const int length = 1 + static_cast<int>(generator() % 200);
      for (int i = 0; i < length; ++i) {
        texts[side].push_back(static_cast<int>(generator() % (2 + trial % 30)));
        captions[side] += (i > 0 ? " w" : "w") + std::to_string(texts[side].back());
      }
    }
    const size_t n = texts[0].size(), m = texts[1].size();
    std::vector<std::vector<int>> table(n + 1, std::vector<int>(m + 1, 0));
    for (size_t i = 1; i <= n; ++i) {
      for (size_t j = 1; j <= m; ++j) {
        table[i][j] = texts[0][i - 1] == texts[1][j - 1]
                          ? table[i - 1][j - 1] + 1
                          : std::max(table[i - 1][j], table[i][j - 1]);
      }
    }
    const double b2 = 1.2 * 1.2, p = table[n][m] / static_cast<double>(n),
                 r = table[n][m] / static_cast<double>(m);
    const double expected = p == 0 ? 0 : (1 + b2) * p * r / (r + b2 * p);
    ASSERT_NEAR(rouge_of(captions[0], {captions[1]}), expected, 1e-12) << n << " and " << m;
  }
}

TEST(Rouge, RefusesWhatWouldTakeMinutes) {
  std::string caption;
  for (int i = 0; i < 400000; ++i) caption += "w ";
  try {
    rouge_of(caption, {caption});
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "image 1: a candidate of 400000 words and a reference of 400000 are too long to "
                 "compare; shorten one");
  }
}

TEST(Cider, EqualCaptionsScoreTenTimesTheShareOfLengthsTheyHave) {
  // "a b" has n-grams of one and two words, two of the four lengths.
  const CiderScore score = cider(count_ngrams({{1, "a b", {"a b"}}, {2, "c", {"d e"}}}));
  EXPECT_DOUBLE_EQ(score.cider_d.per_image[0], 5);
  EXPECT_DOUBLE_EQ(score.plain.per_image[0], 5);
  EXPECT_EQ(score.cider_d.per_image[1], 0);
  EXPECT_DOUBLE_EQ(score.cider_d.corpus, 2.5);
}

TEST(Cider, ClipsCountsAndPunishesAnotherLength) {
  // All n-grams weigh log 2, which cancels. Unigrams (2, 1) and (1, 1), bigrams (1, 1) and (0, 1);
  // one word longer.
  const CiderScore score = cider(count_ngrams({{1, "a a b", {"a b"}}, {2, "c", {"d e"}}}));
  const double bigrams = 1 / std::sqrt(2), penalty = std::exp(-1.0 / 72);
  EXPECT_NEAR(score.cider_d.per_image[0], (2 / std::sqrt(10) + bigrams) * penalty * 10 / 4, 1e-12);
  EXPECT_NEAR(score.plain.per_image[0], (3 / std::sqrt(10) + bigrams) * 10 / 4, 1e-12);
}

TEST(Cider, WordsOfEveryImageWeighNothing) {
  const CiderScore score = cider(
      count_ngrams({{1, "a x", {"a", "a y"}}, {2, "a z", {"a", "z a"}}, {3, "a", {"b a", "c"}}}));
  // Image 2: "a" is in references of all three images; "z" and "z a" in one, "a z" in none.
  const double z = 1 / 1.0;  // "z" alone is left of the unigrams of candidate and reference
  EXPECT_NEAR(score.plain.per_image[1], z / 4 / 2 * 10, 1e-12);
  EXPECT_EQ(score.plain.per_image[2], 0);
}

TEST(Cider, OneImageAloneScoresNothing) {
  EXPECT_EQ(cider(count_ngrams({{1, "a b", {"a b"}}})).cider_d.corpus, 0);
}

TEST(CaptionMetrics, DoNotDependOnThreads) {
  std::mt19937 generator(1);
  const auto caption = [&] {
    std::string text;
    for (uint64_t words = generator() % 12; words > 0; --words) {
      text += (text.empty() ? "w" : " w") + std::to_string(generator() % 20);
    }
    return text;
  };
  std::vector<CaptionPair> images;
  for (int64_t i = 0; i < 300; ++i) images.push_back({i, caption(), {caption(), caption()}});
  const CountedCaptions counted = count_ngrams(images);
  const MeanScore one = rouge_l(counted, 1);
  for (const int threads : {0, 2, 7, 1000}) {
    const MeanScore many = rouge_l(counted, threads);
    EXPECT_EQ(many.per_image, one.per_image);
    EXPECT_EQ(many.corpus, one.corpus);
  }
}

// coco-caption's example: 1,000 images of COCO.
class CocoExample : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("HDETACH_CAPTION_METRICS");
    data_ = named != nullptr ? named : HDETACH_TEST_DATA "/../../../shared/data";
    if (!fs::exists(data_ / "caption-metrics") || !fs::exists(data_ / "coco")) {
      GTEST_SKIP() << "NOT TESTED, coco-caption's own numbers: " << data_
                   << " has no caption-metrics and coco; name a folder that has by "
                      "HDETACH_CAPTION_METRICS";
    }
  }

  nlohmann::json read(const char* name) const {
    return nlohmann::json::parse(std::ifstream(data_ / "caption-metrics" / name));
  }

  std::vector<CaptionPair> tokenised() const {
    std::vector<CaptionPair> images;
    for (const nlohmann::json& image : read("fakecap_ptb_tokenized_test_and_refs.json")) {
      images.push_back({image["image_id"], image["test"], image["refs"]});
    }
    return images;
  }

  void expect_published(const std::vector<CaptionPair>& images) const {
    const nlohmann::json expected = read("EXPECTED.json");
    const nlohmann::json& counts = expected["bleu_counts"];
    const nlohmann::json& published = expected["published"];
    const double printed = 0.0005;  // three decimals
    const CountedCaptions counted = count_ngrams(images);
    const BleuScore score = bleu(counted);
    EXPECT_EQ(score.reference_words, counts["reflen"]);
    EXPECT_EQ(score.candidate_words, counts["testlen"]);
    for (size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(score.guessed[n], counts["guess"][n]);
      EXPECT_EQ(score.correct[n], counts["correct"][n]);
      const std::string name = "Bleu_" + std::to_string(n + 1);
      EXPECT_NEAR(score.corpus[n], published[name].get<double>(), printed) << name;
    }
    EXPECT_NEAR(rouge_l(counted, 2).corpus, published["ROUGE_L"].get<double>(), printed);
    EXPECT_NEAR(cider(counted).cider_d.corpus, published["CIDEr"].get<double>(), printed);
  }

  // The captions of COCO, with line breaks where the file has \n.
  std::map<int64_t, std::vector<std::string>> captions() const {
    std::map<int64_t, std::vector<std::string>> captions;
    std::istringstream lines(
        hdetach::files::read_gzip(data_ / "coco" / "val2014_captions.tsv.gz", size_t{1} << 28));
    for (std::string line; std::getline(lines, line);) {
      const size_t tab = line.find('\t');
      captions[std::stoll(line)].push_back(with_line_breaks(line.substr(tab + 1)));
    }
    return captions;
  }

  static std::string with_line_breaks(std::string text) {
    for (size_t at; (at = text.find("\\n")) != std::string::npos;) text.replace(at, 2, "\n");
    return text;
  }

  fs::path data_;
};

TEST_F(CocoExample, ScoresOfTokenisedCaptionsAreThePublishedOnes) { expect_published(tokenised()); }

TEST_F(CocoExample, TokenizerAgreesOnThePairs) {
  std::ifstream pairs(data_ / "caption-metrics" / "ptb_tokenizer_pairs.tsv");
  int lines = 0;
  for (std::string line; std::getline(pairs, line); ++lines) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    const std::string raw = line.substr(first + 1, second - first - 1);
    EXPECT_EQ(ptb_tokenize(with_line_breaks(raw)), line.substr(second + 1)) << raw;
  }
  EXPECT_EQ(lines, 2503);
}

#ifdef HDETACH_WITH_ZLIB
TEST_F(CocoExample, TokenizerAgreesOnEveryReference) {
  std::map<int64_t, std::vector<std::string>> captions = this->captions();
  for (CaptionPair& image : tokenised()) {
    std::vector<std::string> found;
    for (const std::string& caption : captions[image.image_id]) {
      found.push_back(ptb_tokenize(caption));
    }
    std::sort(found.begin(), found.end());
    std::sort(image.references.begin(), image.references.end());
    EXPECT_EQ(found, image.references) << image.image_id;
  }
}

TEST_F(CocoExample, ScoresOfTheFilesAreThePublishedOnes) {
  nlohmann::json annotations;
  for (const auto& [image, texts] : captions()) {
    for (const std::string& text : texts) {
      annotations["annotations"].push_back(
          {{"image_id", image}, {"id", annotations["annotations"].size()}, {"caption", text}});
    }
  }
  const hdetach::TemporaryFolder folder;
  std::ofstream(folder / "annotations.json") << annotations;
  expect_published(
      read_caption_pairs(folder / "annotations.json",
                         data_ / "caption-metrics" / "captions_val2014_fakecap_results.json", 2));
}
#endif

}  // namespace
