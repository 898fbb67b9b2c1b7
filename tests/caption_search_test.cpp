// Searching for captions, against searches that are simple, slow and written apart.
#include <algorithm>
#include <cmath>
#include <limits>

#include "models/caption_search.h"
#include "tasks/vocabulary.h"
#include "tests/captions.h"

namespace hdetach::test {
namespace {

using Words = std::vector<int32_t>;

// Three words beside the special ones.
const CaptionerShape kTiny{/*words=*/7, /*positions=*/4, /*channels=*/5, /*embedding=*/6,
                           /*hidden=*/8};
const CaptionerShape kLarger{/*words=*/40, /*positions=*/4, /*channels=*/5, /*embedding=*/6,
                             /*hidden=*/8};
constexpr int64_t kSearched = 8;
constexpr int32_t kFirstWord = 4;

Tensor image_of(const Tensor& features, int64_t image) { return features.narrow(0, image, 1); }

// The log probabilities of what comes after `words`.
std::vector<double> after(Captioner& captioner, const Tensor& image, const Words& words) {
  Captioner::State state = captioner.begin(image);
  const auto say = [&](int64_t word) {
    return captioner.step(state, codes({word}, image.device())).log_probability;
  };
  Tensor last = say(tasks::kStart);
  for (int32_t word : words) last = say(word);
  const Tensor row = last[0].cpu().to(at::kDouble);
  return {row.data_ptr<double>(), row.data_ptr<double>() + row.numel()};
}

Found greedy(Captioner& captioner, const Tensor& image, int64_t most_words) {
  Found found;
  while (true) {
    const std::vector<double> next = after(captioner, image, found.words);
    int32_t best = tasks::kEnd;
    if (static_cast<int64_t>(found.words.size()) < most_words) {
      for (int32_t word = kFirstWord; word < static_cast<int32_t>(next.size()); ++word) {
        if (next[word] > next[best]) best = word;
      }
    }
    found.log_probability += next[best];
    if (best == tasks::kEnd) return found;
    found.words.push_back(best);
  }
}

double score(const Found& found, double length_power) {
  return found.log_probability / std::pow(found.words.size() + 1.0, length_power);
}

// One image, every place of the beam to the end.
Found plain_beam(Captioner& captioner, const Tensor& image, const SearchOptions& options) {
  std::vector<Found> live(1), ended;
  while (!live.empty()) {
    std::vector<Found> all;
    for (const Found& from : live) {
      const std::vector<double> next = after(captioner, image, from.words);
      const bool full = static_cast<int64_t>(from.words.size()) == options.most_words;
      for (int32_t word = 0; word < static_cast<int32_t>(next.size()); ++word) {
        if (word != tasks::kEnd && (full || word < kFirstWord)) continue;
        all.push_back(from);
        all.back().words.push_back(word);
        all.back().log_probability += next[word];
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
      return a.log_probability > b.log_probability;
    });
    all.resize(std::min<size_t>(all.size(), options.beam - ended.size()));
    live.clear();
    for (Found& found : all) {
      const bool ends = found.words.back() == tasks::kEnd;
      if (ends) found.words.pop_back();
      (ends ? ended : live).push_back(found);
    }
  }
  return *std::max_element(ended.begin(), ended.end(), [&](const Found& a, const Found& b) {
    return score(a, options.length_power) < score(b, options.length_power);
  });
}

// The best of all captions there are.
void exhaust(Captioner& captioner, const Tensor& image, const SearchOptions& options,
             const Found& from, Found& best) {
  const std::vector<double> next = after(captioner, image, from.words);
  Found ended = from;
  ended.log_probability += next[tasks::kEnd];
  if (score(ended, options.length_power) > score(best, options.length_power)) best = ended;
  if (static_cast<int64_t>(from.words.size()) == options.most_words) return;
  for (int32_t word = kFirstWord; word < static_cast<int32_t>(next.size()); ++word) {
    Found longer = from;
    longer.words.push_back(word);
    longer.log_probability += next[word];
    exhaust(captioner, image, options, longer, best);
  }
}

void expect_same(const Found& got, const Found& want) {
  EXPECT_EQ(got.words, want.words);
  // float32 log probabilities of up to 10 steps, from products of other sizes
  EXPECT_NEAR(got.log_probability, want.log_probability, 1e-4);
}

class CaptionSearch : public OnEachDevice {
 protected:
  // Both models, with several weights each. Stretched so far, they say different things of
  // different images.
  template <typename Body>
  void for_models(const CaptionerShape& shape, const Body& body) {
    for (const char* kind : kCaptioners) {
      for (uint64_t seed : {1, 2, 3}) {
        SCOPED_TRACE(kind + (" " + std::to_string(seed)));
        const auto captioner = born(kind, shape, GetParam(), seed, /*stretch=*/9);
        body(*captioner, features_of(kSearched, shape, GetParam()));
      }
    }
  }
};

TEST_P(CaptionSearch, ABeamOfOneIsGreedy) {
  for_models(kLarger, [](Captioner& captioner, const Tensor& features) {
    SearchOptions options;
    options.most_words = 9;
    const std::vector<Found> found = search(captioner, features, options);
    ASSERT_EQ(found.size(), static_cast<size_t>(kSearched));
    for (int64_t image = 0; image < kSearched; ++image) {
      expect_same(found[image], greedy(captioner, image_of(features, image), options.most_words));
    }
  });
}

TEST_P(CaptionSearch, IsThePlainBeamSearchOfEachImage) {
  for_models(kLarger, [](Captioner& captioner, const Tensor& features) {
    for (int64_t beam : {2, 5}) {
      for (double length_power : {0.0, 2.0}) {
        SearchOptions options;
        options.beam = beam;
        options.most_words = 7;
        options.length_power = length_power;
        const std::vector<Found> found = search(captioner, features, options);
        for (int64_t image = 0; image < kSearched; ++image) {
          expect_same(found[image], plain_beam(captioner, image_of(features, image), options));
        }
      }
    }
  });
}

TEST_P(CaptionSearch, AWideBeamIsExhaustive) {
  for_models(kTiny, [](Captioner& captioner, const Tensor& features) {
    for (double length_power : {0.0, 1.0}) {
      SearchOptions options;
      options.beam = 1 + 3 + 9 + 27;  // all captions of up to three words
      options.most_words = 3;
      options.length_power = length_power;
      const std::vector<Found> found = search(captioner, features, options);
      for (int64_t image = 0; image < kSearched; ++image) {
        Found best;
        best.log_probability = -std::numeric_limits<double>::infinity();
        exhaust(captioner, image_of(features, image), options, {}, best);
        expect_same(found[image], best);
      }
    }
  });
}

TEST_P(CaptionSearch, TellsWhereTheModelLookedAtEachWord) {
  for_models(kLarger, [](Captioner& captioner, const Tensor& features) {
    SearchOptions options;
    options.beam = 3;
    options.most_words = 6;
    for (const Found& found : search(captioner, features, options)) {
      EXPECT_TRUE(found.attention.empty());
    }
    options.attention = true;
    const std::vector<Found> all = search(captioner, features, options);
    for (int64_t image = 0; image < kSearched; ++image) {
      const Found& found = all[image];
      Captioner::State state = captioner.begin(image_of(features, image));
      if (!state.projected.defined()) continue;  // Show and Tell looks once
      ASSERT_EQ(found.attention.size(), found.words.size());
      int64_t last = tasks::kStart;
      for (size_t i = 0; i < found.words.size(); ++i) {
        const Tensor want = captioner.step(state, codes({last}, GetParam())).attention[0].cpu();
        ASSERT_EQ(found.attention[i].size(), static_cast<size_t>(kLarger.positions));
        for (int64_t p = 0; p < kLarger.positions; ++p) {
          EXPECT_NEAR(found.attention[i][p], want[p].item<float>(), 1e-5);
        }
        last = found.words[i];
      }
    }
  });
}

// Zero weights make all words equal; then one bias decides what is said.
TEST_P(CaptionSearch, EqualsGoByCode) {
  for (const char* kind : kCaptioners) {
    for (int64_t beam : {1, 2, 5}) {
      SCOPED_TRACE(kind + (" " + std::to_string(beam)));
      const auto captioner = make_captioner(kind, kLarger, GetParam());
      const Tensor features = features_of(kSearched, kLarger, GetParam());
      SearchOptions options;
      options.beam = beam;
      options.most_words = 3;
      for (const Found& found : search(*captioner, features, options)) {
        EXPECT_EQ(found.words, Words());
        EXPECT_NEAR(found.log_probability, -std::log(40.0), 1e-6);
      }
      {
        const c10::NoGradGuard no_grad;
        for (const NamedTensor& parameter : captioner->parameters()) {
          if (parameter.name == "output.bias") parameter.tensor[tasks::kEnd].fill_(-20);
        }
      }
      for (const Found& found : search(*captioner, features, options)) {
        EXPECT_EQ(found.words, Words({4, 4, 4}));
      }
      options.never = {tasks::kPadding, tasks::kStart};
      for (const Found& found : search(*captioner, features, options)) {
        EXPECT_EQ(found.words, Words({3, 3, 3}));
      }
    }
  }
}

TEST_P(CaptionSearch, AModelThatFellApartSaysNothing) {
  for (const char* kind : kCaptioners) {
    const auto captioner = born(kind, kTiny, GetParam(), 1, std::nan(""));
    SearchOptions options;
    options.beam = 2;
    for (const Found& found : search(*captioner, features_of(2, kTiny, GetParam()), options)) {
      EXPECT_EQ(found.words, Words());
      EXPECT_EQ(found.log_probability, -std::numeric_limits<double>::infinity());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Captioners, CaptionSearch, testing::ValuesIn(devices()), device_test_name);

TEST(CaptionSearchOptions, KnowTheVocabulary) {
  const SearchOptions options;
  EXPECT_EQ(options.start, tasks::kStart);
  EXPECT_EQ(options.end, tasks::kEnd);
  EXPECT_EQ(options.never, Words({tasks::kPadding, tasks::kStart, tasks::kUnknown}));
}

}  // namespace
}  // namespace hdetach::test
