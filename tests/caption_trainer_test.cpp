// Training a captioner: it learns, it resumes to the same bits, and its run folder tells how.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/files.h"
#include "kernels/cuda/device.h"
#include "program.h"
#include "run_files.h"
#include "stop_after.h"
#include "tasks/vocabulary.h"
#include "train/caption_trainer.h"
#include "train/make_task.h"
#include "train/metrics.h"
#include "train/run.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;

class CaptionTrainerTest : public testing::TestWithParam<const char*> {
 protected:
  CaptionTrainerTest() {
    config_ = train::default_config("caption");
    config_.data = "generated";
    config_.wordnet = (root_ / "none").string();
    config_.model = GetParam();
    config_.train_size = 300;
    config_.valid_size = 60;
    config_.hidden = 48;
    config_.embedding = 32;
    config_.dropout = 0.1;
    config_.detach = 0.25;
    config_.lr = 5e-3;
    config_.batch = 10;
  }

  std::optional<train::RunResult> run(const std::string& name, bool resume = false,
                                      int64_t stop_after = 0) {
    return train::run_until(stop_after, config_, root_ / name, resume);
  }
  std::vector<train::Update> updates(int64_t count) {  // of a run without a folder
    const auto data = train::make_data(config_);
    train::CaptionTrainer trainer(config_,
                                  std::get<std::shared_ptr<const tasks::CaptionData>>(data));
    std::vector<train::Update> out;
    for (int64_t i = 0; i < count; ++i) {
      out.push_back(trainer.step());
      trainer.count(out.back());
    }
    return out;
  }
  void expect_stopped_runs_end_the_same() {
    config_.epochs = 2;
    config_.updates_per_epoch = 7;
    const auto whole = run("whole");
    ASSERT_TRUE(whole.has_value());
    for (const int64_t updates : {3, 7, 9}) {
      const std::string name = "stopped-" + std::to_string(updates);
      EXPECT_FALSE(run(name, false, updates).has_value());
      ASSERT_TRUE(run(name, true).has_value());
      expect_equal_runs(root_ / "whole", root_ / name);
    }
  }
  std::string file(const fs::path& path) { return files::read(root_ / path); }
  std::vector<train::EpochMetrics> metrics(const std::string& name) {
    std::istringstream lines(file(fs::path(name) / "metrics.jsonl"));
    std::vector<train::EpochMetrics> out;
    for (std::string line; std::getline(lines, line);) {
      out.push_back(train::parse_metrics(line, "metrics.jsonl"));
    }
    return out;
  }

  TemporaryFolder root_;
  train::Config config_;
};

TEST_P(CaptionTrainerTest, LearnsTheGeneratedTask) {
  config_.train_size = 1200;
  config_.hidden = 64;
  config_.dropout = 0;
  config_.lr = 1e-2;
  config_.batch = 30;
  config_.epochs = config_.model == "show-tell" ? 10 : 4;
  const auto result = run("a");
  ASSERT_TRUE(result.has_value());
  const auto epochs = metrics("a");
  ASSERT_FALSE(epochs.empty());
  // A caption of another image scores near 0, one of five people's about 5.
  EXPECT_LT(epochs.front().valid_measure, 0.8 * result->best_valid_measure);
  EXPECT_GT(result->best_valid_measure, 3.0);
  ASSERT_TRUE(result->test_measure.has_value());
  EXPECT_GT(*result->test_measure, 3.0);
  EXPECT_LT(epochs.back().valid_loss, epochs.front().valid_loss);
}

TEST_P(CaptionTrainerTest, StoppedAnywhereItEndsTheSame) { expect_stopped_runs_end_the_same(); }

TEST_P(CaptionTrainerTest, ThreadsDoNotChangeTheRun) {
  const auto train = [&](const char* threads) {
    const program::Result result = program::run(fmt::format(
        "train caption --quiet --data generated --model {} --hidden 128 --embedding 128 "
        "--train-size 200 --valid-size 40 --epochs 2 --updates-per-epoch 6 --threads {} "
        "--out '{}'",
        config_.model, threads, (root_ / threads).string()));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  train("1");
  for (const char* threads : {"2", "3"}) {
    train(threads);
    expect_equal_runs(root_ / "1", root_ / threads);
  }
}

TEST_P(CaptionTrainerTest, CudaStoppedAnywhereItEndsTheSame) {
  if (!cuda_present()) {
    GTEST_SKIP() << "no CUDA device: resuming a captioner is NOT tested on one here";
  }
  config_.device = "cuda";
  expect_stopped_runs_end_the_same();
}

TEST_P(CaptionTrainerTest, ARunFolderKeepsWordsScoresAndSamples) {
  config_.epochs = 1;
  config_.updates_per_epoch = 5;
  const auto result = run("a");
  ASSERT_TRUE(result.has_value());
  std::istringstream lines(file("a/words.txt"));
  std::vector<std::string> words;
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  EXPECT_GT(tasks::Vocabulary(words).size(), 10);
  const auto epochs = metrics("a");
  ASSERT_EQ(epochs.size(), 1u);
  EXPECT_EQ(epochs[0].samples.size(), 8u);
  ASSERT_EQ(epochs[0].caption_scores.size(), 6u);  // no METEOR while training
  EXPECT_EQ(epochs[0].caption_scores.at("CIDEr"), epochs[0].valid_measure);
  EXPECT_TRUE(result->measure_is_cider);
  EXPECT_EQ(train::parse_result(file("a/result.json"), "result.json").test_caption_scores,
            result->test_caption_scores);
}

TEST_P(CaptionTrainerTest, EndsWhenNothingGetsBetter) {
  config_.epochs = 20;
  config_.updates_per_epoch = 1;
  config_.lr = 1e-12;  // nothing is learnt
  config_.patience = 3;
  const auto result = run("a");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, "stopped-early");
  EXPECT_EQ(result->epochs, 4);
  EXPECT_EQ(result->message, "no better CIDEr for 3 epochs");
}

TEST_P(CaptionTrainerTest, NumbersOfTheGradientAreClampedThenTheNormIsClipped) {
  config_.clamp = 1e-3;
  config_.clip = 1e-2;
  const auto updates = this->updates(3);
  for (const train::Update& update : updates) {
    EXPECT_TRUE(update.applied);
    EXPECT_TRUE(update.clipped);
    EXPECT_GT(update.grad_norm, config_.clip);  // of the gradient as it was
  }
  config_.clamp = 100;
  config_.clip = 0;
  for (const train::Update& update : this->updates(3)) EXPECT_FALSE(update.clipped);
}

// Clamped alone, clipped alone, both, neither: the decisions are the same, and what is rounded
// differently has no time to grow.
TEST_P(CaptionTrainerTest, CudaTrainsAsTheCpuDoes) {
  if (!cuda_present()) {
    GTEST_SKIP() << "no CUDA device: training a captioner is NOT tested on one here";
  }
  config_.dropout = 0;  // drawn on the device
  for (const auto& [clamp, clip] :
       std::vector<std::pair<double, double>>{{2e-3, 0}, {0, 5e-2}, {2e-3, 5e-2}, {0, 0}}) {
    config_.clamp = clamp;
    config_.clip = clip;
    config_.device = "cpu";
    const auto want = updates(8);
    config_.device = "cuda";
    const auto got = updates(8), again = updates(8);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(got[i].loss / want[i].loss, 1, 1e-3) << clamp << ", " << clip << ": " << i;
      EXPECT_NEAR(got[i].grad_norm / want[i].grad_norm, 1, 1e-2) << i;
      EXPECT_EQ(got[i].applied, want[i].applied) << i;
      EXPECT_EQ(got[i].clipped, want[i].clipped) << i;
      EXPECT_EQ(got[i].loss, again[i].loss) << i;
      EXPECT_EQ(got[i].grad_norm, again[i].grad_norm) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CaptionTrainerTest, testing::Values("show-tell", "soft-attention"),
                         [](const auto& info) {
                           return std::string(info.param) == "show-tell" ? "ShowTell"
                                                                         : "SoftAttention";
                         });

}  // namespace
}  // namespace hdetach
