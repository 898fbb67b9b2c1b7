// Words by number, minibatches of captions, and the captions that are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tasks/caption_set.h"
#include "tasks/generated_captions.h"
#include "tasks/vocabulary.h"

namespace {

using namespace hdetach::tasks;

TEST(Vocabulary, TheMostFrequentWordsComeFirst) {
  const Vocabulary vocabulary({"a dog and a cat", "a cat", "the dog", "zebra"}, 1);
  EXPECT_EQ(vocabulary.words(),
            (std::vector<std::string>{"<pad>", "<start>", "<end>", "<unk>", "a", "cat", "dog"}));
  EXPECT_EQ(vocabulary.code("a"), 4);
  EXPECT_EQ(vocabulary.code("zebra"), kUnknown);
  EXPECT_EQ(Vocabulary(std::vector<std::string>{}, 0).size(), 4);
}

TEST(Vocabulary, CodesAndBack) {
  const Vocabulary vocabulary({"a dog sees a cat"}, 0);
  const auto codes = vocabulary.encode("a cat bites a dog", 4);
  EXPECT_EQ(codes, (std::vector<int32_t>{4, 5, kUnknown, 4}));
  EXPECT_EQ(vocabulary.text(codes), "a cat <unk> a");
  EXPECT_EQ(vocabulary.text({kStart, 4, kPadding, 5, kEnd, 4}), "a cat");
  EXPECT_EQ(vocabulary.text({}), "");
  EXPECT_THROW(vocabulary.text({8}), std::out_of_range);
  EXPECT_THROW(vocabulary.text({-1}), std::out_of_range);
}

TEST(Vocabulary, ACaptionCannotSpeakOfTheSpecialWords) {
  const Vocabulary vocabulary({"<end> <pad> a <start> <unk>"}, 0);
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.encode("<end> a <pad> <start>", 9),
            (std::vector<int32_t>{kUnknown, 4, kUnknown, kUnknown}));
}

TEST(Vocabulary, ComesBackFromItsWords) {
  const Vocabulary vocabulary({"b a a"}, 0);
  const Vocabulary again(vocabulary.words());
  EXPECT_EQ(again.words(), vocabulary.words());
  EXPECT_EQ(again.code("b"), vocabulary.code("b"));
  const std::vector<std::string> special = {"<pad>", "<start>", "<end>", "<unk>"};
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"a", "a"}, {""}, {"a b"}, {"<end>"}}) {
    std::vector<std::string> words = special;
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_THROW(Vocabulary{words}, std::runtime_error) << more[0];
  }
  EXPECT_THROW(Vocabulary(std::vector<std::string>{"a"}), std::runtime_error);
}

// Captions are told apart by their one word: 10 x image + number.
std::vector<CaptionedImage> numbered(int64_t images, int64_t captions) {
  std::vector<CaptionedImage> set(images);
  for (int64_t i = 0; i < images; ++i) {
    for (int64_t k = 0; k < captions; ++k) {
      set[i].captions.push_back({static_cast<int32_t>(100 + 10 * i + k)});
    }
  }
  return set;
}

CaptionBatch caption_batch(const std::vector<CaptionedImage>& set, int64_t images, int64_t captions,
                           uint64_t seed, int64_t update) {
  return CaptionSampler(set, images, captions, seed).minibatch(update);
}

TEST(CaptionBatch, LaysOutCaptionsWithStartEndAndPadding) {
  std::vector<CaptionedImage> set(1);
  set[0].captions = {{7, 8, 9}, {5}};
  const CaptionBatch batch = caption_batch(set, 1, 2, 1, 0);
  ASSERT_EQ(batch.steps, 4);
  const bool long_first = batch.lengths[0] == 4;
  const size_t a = long_first ? 0 : 1, b = 1 - a;
  EXPECT_EQ(batch.lengths[a], 4);
  EXPECT_EQ(batch.lengths[b], 2);
  const std::vector<int32_t> long_in = {kStart, 7, 8, 9}, long_out = {7, 8, 9, kEnd};
  const std::vector<int32_t> short_in = {kStart, 5, kPadding, kPadding};
  const std::vector<int32_t> short_out = {5, kEnd, kPadding, kPadding};
  for (size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(batch.inputs[2 * t + a], long_in[t]) << t;
    EXPECT_EQ(batch.targets[2 * t + a], long_out[t]) << t;
    EXPECT_EQ(batch.inputs[2 * t + b], short_in[t]) << t;
    EXPECT_EQ(batch.targets[2 * t + b], short_out[t]) << t;
  }
}

TEST(CaptionBatch, EveryPassShowsEveryImageAndRowsBelongToTheirImages) {
  const auto set = numbered(12, 5);
  std::vector<std::vector<int64_t>> passes(3);
  for (int64_t update = 0; update < 9; ++update) {
    const CaptionBatch batch = caption_batch(set, 4, 2, 3, update);
    ASSERT_EQ(batch.images.size(), 4u);
    ASSERT_EQ(batch.lengths.size(), 8u);
    for (size_t row = 0; row < 8; ++row) {
      EXPECT_EQ((batch.targets[row] - 100) / 10, batch.images[row / 2]);
    }
    auto& pass = passes[update / 3];
    pass.insert(pass.end(), batch.images.begin(), batch.images.end());
  }
  EXPECT_NE(passes[0], passes[1]);
  for (const auto& pass : passes)
    EXPECT_EQ(std::set<int64_t>(pass.begin(), pass.end()).size(), 12u);
}

TEST(CaptionBatch, CaptionsTakeTurnsFromPassToPass) {
  const auto set = numbered(3, 5);
  std::map<int32_t, int> shown;
  for (int64_t pass = 0; pass < 5; ++pass) {
    const CaptionBatch batch = caption_batch(set, 3, 2, 9, pass);
    const std::set<int32_t> words(batch.targets.begin(), batch.targets.begin() + 6);
    EXPECT_EQ(words.size(), 6u) << pass;
    for (const int32_t word : words) ++shown[word];
  }
  ASSERT_EQ(shown.size(), 15u);  // 2 of 5, five times over: each twice
  for (const auto& [word, times] : shown) EXPECT_EQ(times, 2) << word;
}

TEST(CaptionBatch, TooFewCaptionsAreGivenTwice) {
  const CaptionBatch batch = caption_batch(numbered(1, 2), 1, 5, 1, 0);
  const std::multiset<int32_t> words(batch.targets.begin(), batch.targets.begin() + 5);
  EXPECT_EQ(words.count(100) + words.count(101), 5u);
  EXPECT_GE(std::min(words.count(100), words.count(101)), 2u);
}

TEST(CaptionBatch, DependsOnItsArgumentsAlone) {
  const auto set = numbered(50, 5);
  const CaptionBatch first = caption_batch(set, 10, 5, 7, 13);
  caption_batch(set, 10, 5, 7, 14);
  const CaptionBatch again = caption_batch(set, 10, 5, 7, 13);
  EXPECT_EQ(first.images, again.images);
  EXPECT_EQ(first.targets, again.targets);
  EXPECT_NE(first.images, caption_batch(set, 10, 5, 8, 13).images);
  // Pinned: a change here changes every run of every user.
  EXPECT_EQ(first.images, (std::vector<int64_t>{10, 22, 1, 11, 15, 43, 12, 41, 5, 19}));
  EXPECT_EQ(caption_batch(set, 1, 5, 1, 0).targets,
            (std::vector<int32_t>{514, 511, 512, 510, 513, 2, 2, 2, 2, 2}));
}

TEST(CaptionBatch, OneSamplerGivesWhatANewOneWould) {
  const auto set = numbered(7, 5);
  CaptionSampler sampler(set, 3, 2, 5);
  for (const int64_t update : {0, 1, 2, 3, 30, 4, 4, 0}) {  // some lie on the border of two passes
    const CaptionBatch kept = sampler.minibatch(update),
                       fresh = caption_batch(set, 3, 2, 5, update);
    EXPECT_EQ(kept.images, fresh.images) << update;
    EXPECT_EQ(kept.inputs, fresh.inputs) << update;
    EXPECT_EQ(kept.targets, fresh.targets) << update;
    EXPECT_EQ(kept.lengths, fresh.lengths) << update;
  }
}

TEST(CaptionBatch, RefusesNothing) {
  const auto set = numbered(2, 1);
  EXPECT_THROW(caption_batch({}, 1, 1, 1, 0), std::invalid_argument);
  EXPECT_THROW(caption_batch(set, 0, 1, 1, 0), std::invalid_argument);
  EXPECT_THROW(caption_batch(set, 1, 0, 1, 0), std::invalid_argument);
  EXPECT_THROW(caption_batch(set, 1, 1, 1, -1), std::invalid_argument);
  EXPECT_THROW(caption_batch(numbered(2, 0), 1, 1, 1, 0), std::invalid_argument);
}

std::vector<float> features(const CaptionData& data, int64_t row) {
  std::vector<float> values(data.features->positions() * data.features->channels());
  data.features->read(row, values.data());
  return values;
}

TEST(GeneratedCaptions, HaveTheAgreedForm) {
  for (const bool spatial : {false, true}) {
    const CaptionData data = generated_captions(300, 20, 10, spatial, 4);
    EXPECT_EQ(data.train.size(), 300u);
    EXPECT_EQ(data.valid.size(), 20u);
    EXPECT_EQ(data.test.size(), 10u);
    EXPECT_EQ(data.features->images(), 330);
    EXPECT_EQ(data.features->positions(), spatial ? 9 : 1);
    EXPECT_EQ(data.features->channels(), 64);
    std::set<int64_t> rows;
    for (const auto* split : {&data.train, &data.valid, &data.test}) {
      for (const CaptionedImage& image : *split) {
        rows.insert(image.row);
        ASSERT_EQ(image.references.size(), 5u);
        EXPECT_EQ(std::set<std::string>(image.references.begin(), image.references.end()).size(),
                  5u);
        for (size_t k = 0; k < 5; ++k) {
          EXPECT_EQ(data.vocabulary.text(image.captions[k]), image.references[k]);
        }
      }
    }
    EXPECT_EQ(rows.size(), 330u);
    EXPECT_EQ(*rows.rbegin(), 329);
  }
}

TEST(GeneratedCaptions, FollowFromTheSeedAndNotFromTheSizes) {
  const CaptionData data = generated_captions(30, 5, 0, false, 4);
  const CaptionData other = generated_captions(60, 5, 5, false, 4);
  EXPECT_EQ(data.train[29].references, other.train[29].references);
  EXPECT_EQ(data.valid[4].references, other.valid[4].references);
  EXPECT_EQ(features(data, data.valid[4].row), features(other, other.valid[4].row));
  EXPECT_NE(generated_captions(30, 5, 0, false, 5).train[29].references, data.train[29].references);
  EXPECT_TRUE(data.test.empty());
}

// The nearest training image says what is seen: the features tell it, and little else does.
TEST(GeneratedCaptions, AreToldByTheFeatures) {
  const CaptionData data = generated_captions(2000, 1, 100, false, 6);
  const auto words = [](const CaptionedImage& image) {
    std::multiset<std::string> all;
    for (const std::string& caption : image.references) {
      size_t at = 0;
      for (size_t end; (end = caption.find(' ', at)) != std::string::npos; at = end + 1) {
        all.insert(caption.substr(at, end - at));
      }
      all.insert(caption.substr(at));
    }
    return all;
  };
  int right = 0;
  for (const CaptionedImage& image : data.test) {
    const auto wanted = features(data, image.row);
    double best = 1e30;
    const CaptionedImage* nearest = nullptr;
    for (const CaptionedImage& other : data.train) {
      const auto found = features(data, other.row);
      double distance = 0;
      for (size_t i = 0; i < wanted.size(); ++i) distance += std::pow(wanted[i] - found[i], 2);
      if (distance < best) {
        best = distance;
        nearest = &other;
      }
    }
    // What every caption of the one has, every caption of the other has.
    bool same = true;
    const auto mine = words(image), theirs = words(*nearest);
    for (const std::string& word : std::set<std::string>(mine.begin(), mine.end())) {
      if (mine.count(word) >= 5) same = same && theirs.count(word) >= 5;
    }
    right += same;
  }
  EXPECT_GT(right, 80);  // 864 scenes: about nine in ten stand among 2000 images
}

}  // namespace
