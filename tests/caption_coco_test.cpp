// The real captions and features of COCO, where the machine has them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tasks/caption_set.h"
#include "tasks/coded_features.h"

namespace {

using hdetach::tasks::CaptionData;

class CocoFolder : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("HDETACH_COCO");
    options_.folder = named != nullptr ? named : HDETACH_TEST_DATA "/../../../shared/data/coco";
    if (!std::filesystem::exists(options_.folder)) {
      GTEST_SKIP() << "NOT TESTED, the COCO folder: there is no " << options_.folder
                   << "; name one by HDETACH_COCO";
    }
  }

  hdetach::tasks::CaptionDataOptions options_;
};

#ifdef HDETACH_WITH_ZLIB
TEST_F(CocoFolder, HasTheSplitsItClaims) {
  const CaptionData data = read_caption_data(options_);
  EXPECT_EQ(data.train.size(), 26705u);
  EXPECT_EQ(data.valid.size(), 4392u);
  EXPECT_EQ(data.test.size(), 4407u);
  EXPECT_NEAR(data.vocabulary.size(), 4877, 30);  // a finer tokenizer moves rare words about
  EXPECT_EQ(data.vocabulary.words()[4], "a");
  EXPECT_EQ(data.test[0].id, 42);
  EXPECT_EQ(data.test[0].references[0], "a dog sleeping on a show rack in the shoes");
  EXPECT_EQ(data.vocabulary.text(data.test[0].captions[0]), data.test[0].references[0]);
}
#endif

// The two kinds were coded apart, from the same network: where a channel is not among the 32
// largest of a position its mean stands, so that means over images agree and single images nearly
// do.
TEST_F(CocoFolder, FeaturesByPositionAgreeWithTheirMeans) {
  const std::filesystem::path folder = std::filesystem::path(options_.folder) / "feat";
  const auto pooled = hdetach::tasks::open_coded_features(folder, false);
  const auto spatial = hdetach::tasks::open_coded_features(folder, true);
  ASSERT_EQ(pooled->images(), 35504);
  ASSERT_EQ(spatial->images(), 35504);
  const int64_t channels = spatial->channels(), positions = spatial->positions();
  ASSERT_EQ(pooled->channels(), channels);
  std::vector<float> x(positions * channels), y(channels);
  std::vector<double> mean_x(channels), mean_y(channels);
  double xx = 0, xy = 0, yy = 0, sum_x = 0, sum_y = 0, count = 0;
  for (int64_t image = 0; image < 35504; image += 71) {  // 501 images of all files
    spatial->read(image, x.data());
    pooled->read(image, y.data());
    for (int64_t c = 0; c < channels; ++c, ++count) {
      double mean = 0;
      for (int64_t p = 0; p < positions; ++p) mean += x[p * channels + c] / positions;
      mean_x[c] += mean / 501;
      mean_y[c] += y[c] / 501;
      xx += mean * mean;
      xy += mean * y[c];
      yy += y[c] * y[c];
      sum_x += mean;
      sum_y += y[c];
    }
  }
  EXPECT_NEAR(sum_x / sum_y, 1, 0.02);
  const double correlation = (count * xy - sum_x * sum_y) /
                             std::sqrt((count * xx - sum_x * sum_x) * (count * yy - sum_y * sum_y));
  EXPECT_GT(correlation, 0.85);  // 0.90 on the test images; 32 of 2048 channels are kept
  double error = 0, size = 0;
  for (int64_t c = 0; c < channels; ++c) {
    error += std::pow(mean_x[c] - mean_y[c], 2);
    size += std::pow(mean_y[c], 2);
  }
  EXPECT_LT(std::sqrt(error / size), 0.05);  // 0.02 on the test images; zeros as fill: 0.6
}

}  // namespace
