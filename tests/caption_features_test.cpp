// Features on their way to the disk: images squashed to a square, rows written and found again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/files.h"
#include "formats/jpeg.h"
#include "tasks/feature_file.h"
#include "tasks/squash.h"
#include "tasks/tensor_features.h"
#include "tests/program.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<float>;

Rows squashed(const std::vector<uint8_t>& grey, int64_t width, int64_t side) {
  jpeg::Image image{width, static_cast<int64_t>(grey.size()) / width, {}};
  for (const uint8_t value : grey) image.pixels.insert(image.pixels.end(), 3, value);
  Rows rgb(side * side * 3, -1), result;
  squash(image, side, rgb.data());
  for (size_t i = 0; i < rgb.size(); i += 3) {
    EXPECT_TRUE(rgb[i] == rgb[i + 1] && rgb[i] == rgb[i + 2]);
    result.push_back(rgb[i]);
  }
  return result;
}

void expect_near(const Rows& found, const Rows& expected, float most) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], most) << i;
}

TEST(Squash, KeepsWhatFitsAndAveragesWhatShrinks) {
  constexpr float kRounding = 1e-4f;  // of floats up to 255
  expect_near(squashed({1, 2, 3, 4}, 2, 2), {1, 2, 3, 4}, 0);
  expect_near(squashed({7}, 1, 3), Rows(9, 7), kRounding);
  expect_near(squashed(std::vector<uint8_t>(70, 200), 10, 4), Rows(16, 200), kRounding);
  // Twice as large: a new pixel lies a quarter from one old one and three quarters from the next.
  expect_near(squashed({0, 100}, 2, 4),
              {0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100}, kRounding);
  // Half as large: weights 1, 3, 3, 1 on four pixels, without those beyond the edge.
  expect_near(squashed({0, 0, 80, 80, 0, 0, 80, 80}, 4, 2),
              {80.0f / 7, 480.0f / 7, 80.0f / 7, 480.0f / 7}, kRounding);
}

class FeatureFileTest : public testing::Test {
 protected:
  FeatureFile open(std::vector<int64_t> ids = {5, 3, 9}, int64_t positions = 2,
                   const std::string& weights = "a") const {
    return {path(), std::move(ids), positions, 2, {{"weights", weights}}};
  }
  fs::path path() const { return folder_ / "train.safetensors"; }
  fs::path part() const { return folder_ / "train.safetensors.part"; }

  template <class Call>
  static std::string message(Call call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string refusal(const fs::path& file, const std::string& why) const {
    return file.string() + " is there already and does not match: " + why +
           "; move it away, or name another folder by --out";
  }

  const Rows rows_ = {1, -2, 0.5, 65504, 0, 6.1e-5f, 3e-6f, 1e-9f, 1.0f / 3, 1000.3f, 7, 8};
  TemporaryFolder folder_;
};

TEST_F(FeatureFileTest, IsWhatTensorFeaturesRead) {
  FeatureFile file = open();
  file.append(rows_);
  file.complete();
  EXPECT_TRUE(file.is_complete());
  EXPECT_FALSE(fs::exists(part()));
  const TensorFeatures read = open_tensor_features({path()}, /*spatial=*/true);
  EXPECT_EQ(read.rows.at(3), 1);
  ASSERT_EQ(read.features->positions(), 2);
  for (int64_t image = 0; image < 3; ++image) {
    Rows row(4);
    read.features->read(image, row.data());
    for (size_t i = 0; i < 4; ++i) {
      // The nearest half is at most half a step away: 2^-11 of the number, or 2^-25.
      const float value = rows_[image * 4 + i];
      EXPECT_NEAR(row[i], value, std::max(std::abs(value) * 0x1p-11f, 0x1p-25f)) << value;
    }
  }
  EXPECT_EQ(open().done(), 3);
  EXPECT_TRUE(open().is_complete());
}

TEST_F(FeatureFileTest, TiesGoToTheEvenHalf) {
  FeatureFile file = open({1}, 2);
  file.append({2049, 2051, 0x1p-25f, 0x3p-25f});
  file.complete();
  Rows row(4);
  open_tensor_features({path()}, true).features->read(0, row.data());
  EXPECT_EQ(row, (Rows{2048, 2052, 0, 0x1p-23f}));
}

TEST_F(FeatureFileTest, CutAnywhereEndsTheSame) {
  {
    FeatureFile file = open();
    file.append(rows_);
    file.complete();
  }
  const std::string whole = files::read(path());
  fs::remove(path());
  for (size_t size = 0; size <= whole.size(); size += 5) {
    std::ofstream(part(), std::ios::binary) << whole.substr(0, size);
    FeatureFile file = open();
    ASSERT_FALSE(file.is_complete());
    file.append(Rows(rows_.begin() + file.done() * 4, rows_.end()));
    file.complete();
    ASSERT_EQ(files::read(path()), whole) << size;
    fs::remove(path());
  }
}

TEST_F(FeatureFileTest, OtherSettingsAreRefused) {
  {
    FeatureFile file = open();
    file.append(Rows(rows_.begin(), rows_.begin() + 4));
    EXPECT_EQ(message([&] { open(); }),
              part().string() + ": another process is writing it; wait for that one");
  }
  const std::string begun = files::read(part());
  const auto check = [&](const fs::path& file) {
    EXPECT_EQ(message([&] {
                open({5, 3, 9}, 2, "b");
              }),
              refusal(file, R"(weights is "a" there and "b" now)"));
    EXPECT_EQ(message([&] {
                open({5, 3, 9}, 1);
              }),
              refusal(file, "its features are [3,2,2] and would be [3,2] now"));
    EXPECT_EQ(message([&] { open({5, 3, 8}); }), refusal(file, "its list of images is another"));
    EXPECT_EQ(message([&] { open(std::vector<int64_t>(10000, 4)); }),
              refusal(file, "its features are [3,2,2] and would be [10000,2,2] now"));
  };
  check(part());
  EXPECT_EQ(files::read(part()), begun);
  fs::rename(part(), path());
  check(path());
  EXPECT_EQ(message([&] { open(); }), path().string() + " has " + std::to_string(begun.size()) +
                                          " bytes where it must have " +
                                          std::to_string(begun.size() + 16) + "; remove it");
  files::write(path(), "something else");
  EXPECT_EQ(message([&] { open(); }), refusal(path(), "it was not made by hdetach features"));
}

TEST_F(FeatureFileTest, ASkippedImageHasNoFeaturesAndIsKnownLater) {
  {
    FeatureFile file = open();
    file.mark(1, true);
    file.mark(2, true);
  }
  {
    FeatureFile file = open();  // as if killed
    EXPECT_TRUE(file.is_skipped(1) && file.is_skipped(2) && !file.is_skipped(0));
    file.mark(2, false);
    file.append(rows_);
    file.complete();
  }
  EXPECT_TRUE(open().is_complete());
  EXPECT_TRUE(open().is_skipped(1));
  EXPECT_FALSE(open().is_skipped(2));
  const TensorFeatures found = open_tensor_features({path()}, true);
  EXPECT_EQ(found.rows, (std::unordered_map<int64_t, int64_t>{{5, 0}, {9, 2}}));
}

TEST_F(FeatureFileTest, BehindALinkImagesAreSkippedToo) {
  const std::string real = path().string() + ".real";
  std::filesystem::create_symlink(real, path());
  FeatureFile file = open();
  file.mark(1, true);
  file.append(rows_);
  file.complete();
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_TRUE(std::filesystem::is_regular_file(real));
  EXPECT_TRUE(open().is_skipped(1));
}

TEST_F(FeatureFileTest, NumbersThatNoHalfHoldsAreRefused) {
  FeatureFile file = open();
  for (const float bad : {65505.0f, -1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    Rows rows = rows_;
    rows[5] = bad;
    const std::string text = message([&] { file.append(rows); });
    EXPECT_TRUE(program::contains(text, "a feature of image 3 is")) << text;
    EXPECT_EQ(file.done(), 0);
  }
}

}  // namespace
}  // namespace hdetach::tasks
