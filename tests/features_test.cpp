// hdetach features as its users run it, with a ResNet-50 of random numbers.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "formats/files.h"
#include "formats/jpeg.h"
#include "models/resnet.h"
#include "tasks/caption_files.h"
#include "tasks/squash.h"
#include "tests/program.h"
#include "tests/resnet_arrays.h"
#ifdef HDETACH_WITH_JPEG
#include "tests/jpeg_images.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;
using program::contains;

// Six images, four of them to train on, and weights.
class FeaturesProgram : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "images/val2014");
    fs::create_directories(folder_ / "captions");
    nlohmann::json images = nlohmann::json::array();
    const char* const splits[] = {"train", "restval", "val", "train", "test", "train"};
    for (int i = 0; i < 6; ++i) {
      const std::string name = fmt::format("{}.jpg", i);
      const int width = 40 + 90 * i, height = 300 - 40 * i;
      files::write(folder_ / ("images/val2014/" + name),
                   encode_jpeg(slope(width, height, static_cast<uint8_t>(50 * i)), width, height));
      const std::vector<std::string> words = {"a", "slope", "in", "blue", std::to_string(i)};
      images.push_back({{"cocoid", 100 + i},
                        {"split", splits[i]},
                        {"filepath", "val2014"},
                        {"filename", name},
                        {"sentences", {{{"raw", "A slope in blue."}, {"tokens", words}}}}});
    }
    files::write(folder_ / "captions/dataset.json", nlohmann::json{{"images", images}}.dump());
    std::ofstream(weights(), std::ios::binary) << ResNetArrays(7).file();
  }

  fs::path weights() const { return folder_ / "resnet50.safetensors"; }
  std::string arguments(const std::string& out, const std::string& more) const {
    return fmt::format(
        "features --captions '{0}/captions' --images '{0}/images' --weights '{1}' "
        "--out '{0}/{2}' --batch 2 {3}",
        folder_.path().string(), weights().string(), out, more);
  }
  program::Result run(const std::string& out, const std::string& more = "") const {
    return program::run(arguments(out, more));
  }
  void expect_failure(const std::string& out, const std::string& more, const std::string& part) {
    const program::Result result = run(out, more);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_TRUE(contains(result.err, part)) << result.err;
  }
  std::string content(const std::string& name) const { return files::read(folder_ / name); }

  // Starts the program, and sends the signal once another row is written.
  int run_until_written(const std::string& out, int signal) const {
    const fs::path part = folder_ / (out + "/train.safetensors.part");
    const auto size = [&part] {
      std::error_code none;
      const auto bytes = fs::file_size(part, none);
      return none ? 0 : static_cast<int64_t>(bytes);
    };
    const int64_t before = std::max<int64_t>(size(), 1000);  // the header
    const pid_t child = fork();
    if (child == 0) {
      const std::string command = fmt::format("exec '{}' {} >'{}' 2>&1", HDETACH_PROGRAM,
                                              arguments(out, ""), (folder_ / "log").string());
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    while (size() <= before && waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, signal);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  TemporaryFolder folder_;
};

void expect_row(const tasks::ImageFeatures& features, int64_t row,
                const std::vector<float>& expected) {
  std::vector<float> found(features.positions() * features.channels());
  features.read(row, found.data());
  ASSERT_EQ(found.size(), expected.size());
  float largest = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, expected[i]);
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  EXPECT_GT(largest, 0.1f);
  // Half a step of F16 is 2^-11; the rest is for float32 in a batch of another size.
  EXPECT_LE(worst, largest * 0x1.1p-11f);
}

TEST_F(FeaturesProgram, WritesWhatTheNetworkSaysOfEachImage) {
  ASSERT_EQ(run("pool").exit_code, 0);
  ASSERT_EQ(run("grid", "--positions 49").exit_code, 0);
  const tasks::FeatureFolder pool(folder_ / "pool", false), grid(folder_ / "grid", true);
  const ResNet network(read_resnet_weights(weights()), false);
  int images = 0;
  tasks::read_captions(folder_ / "captions", [&](const tasks::ListedImage& image) {
    const std::string name = (folder_ / "images" / image.file).string();
    std::vector<float> pixels(224 * 224 * 3);
    tasks::squash(jpeg::decode(files::read(name), name), 224, pixels.data());
    const std::vector<float> expected = network.features(pixels, 224, /*pooled=*/false);
    expect_row(*grid.features(), *grid.row(image), expected);
    std::vector<float> mean(2048);
    for (size_t i = 0; i < expected.size(); ++i) mean[i % 2048] += expected[i] / 49;
    expect_row(*pool.features(), *pool.row(image), mean);
    ++images;
  });
  EXPECT_EQ(images, 6);
  EXPECT_EQ(pool.features()->images(), 6);

  const program::Result again = run("pool");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(program::lines(again.out), 3);
  EXPECT_TRUE(contains(again.out, "train.safetensors: 4 images, complete already")) << again.out;
  expect_failure("pool", "--positions 49",
                 "train.safetensors is there already and does not match: its features are [4,2048] "
                 "and would be [4,49,2048] now; move it away, or name another folder by --out");
}

TEST_F(FeaturesProgram, KilledAndResumedGivesTheSameBytes) {
  ASSERT_EQ(run("whole").exit_code, 0);
  const int killed = run_until_written("parts", SIGKILL);
  EXPECT_TRUE(killed == -SIGKILL || killed == 0) << killed;
  // Not a whole batch: the row before is made again with its neighbour.
  const fs::path part = folder_ / "parts/train.safetensors.part";
  if (fs::exists(part)) fs::resize_file(part, fs::file_size(part) - 5);
  const int ended = run_until_written("parts", SIGTERM);
  EXPECT_TRUE(ended == 128 + SIGTERM || ended == 0) << ended << content("log");
  EXPECT_EQ(contains(content("log"), "the same command goes on from there"), ended != 0);
  ASSERT_EQ(run("parts").exit_code, 0);
  for (const char* name : {"train.safetensors", "valid.safetensors", "test.safetensors"}) {
    EXPECT_TRUE(content(std::string("parts/") + name) == content(std::string("whole/") + name))
        << name;
  }
}

TEST_F(FeaturesProgram, BadInputsAreNamedAndNothingIsLost) {
  const fs::path image = folder_ / "images/val2014/5.jpg";  // in the second batch of train
  const std::string bytes = files::read(image);
  files::write(image, bytes.substr(0, bytes.size() / 2));
  const std::string reason = "5.jpg: not a JPEG image that can be read: Premature end of JPEG file";
  for (const char* time : {"first", "again"}) {
    SCOPED_TRACE(time);
    expect_failure("out", "", reason);
    expect_failure("out", "", "1 of 6 images could not be read and have no features");
  }
  // The others are as they would be without the broken one.
  files::write(image, bytes);
  ASSERT_EQ(run("whole").exit_code, 0);
  {
    const tasks::FeatureFolder some(folder_ / "out", false), all(folder_ / "whole", false);
    int without = 0;
    tasks::read_captions(folder_ / "captions", [&](const tasks::ListedImage& listed) {
      std::vector<float> found(2048), expected(2048);
      all.features()->read(*all.row(listed), expected.data());
      if (!some.row(listed)) {
        EXPECT_EQ(listed.id, 105);
        ++without;
        return;
      }
      some.features()->read(*some.row(listed), found.data());
      EXPECT_EQ(found, expected) << listed.id;
    });
    EXPECT_EQ(without, 1);
  }
  // Nor does one end it that is no broken image but cannot be read: here of a disk that fails.
  fs::remove(image);
  fs::create_symlink("/proc/self/mem", image);
  expect_failure("unread", "", "5.jpg: cannot read: Input/output error");
  expect_failure("unread", "", "1 of 6 images could not be read and have no features");
  fs::remove(image);
  files::write(image, bytes);
  fs::remove(folder_ / "out/train.safetensors");
  EXPECT_EQ(run("out").exit_code, 0);
  EXPECT_TRUE(content("out/train.safetensors") == content("whole/train.safetensors"));
  fs::remove(image);
  expect_failure("out", "",
                 "1 of the 6 images that " + (folder_ / "captions").string() +
                     " lists are not in "
                     "--images " +
                     (folder_ / "images").string() + "; the first is " + image.string() +
                     " (image 105)");
  files::write(image, bytes);
  files::write(folder_ / "file", "");
  expect_failure("file/out", "", "cannot make the folder");
  std::string list = content("captions/dataset.json");
  list.replace(list.find("val2014"), 7, "../up");
  files::write(folder_ / "captions/dataset.json", list);
  expect_failure("out2", "", "image 100 is in ../up/0.jpg, which leads out of --images");
  for (const char* wrong : {"--positions 5", "--device tpu"}) {
    const program::Result result = run("out2", wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_TRUE(contains(result.err, std::string(wrong).substr(0, 8))) << result.err;
  }
}

}  // namespace
}  // namespace hdetach
#endif
