// Run folders: what is in them, and that going on equals never having stopped.
#include "run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "run_files.h"
#include "train/run.h"
#include "train/run_folder.h"

namespace hdetach {
namespace {

using train::Config;
namespace fs = std::filesystem;

TEST_F(RunFolderTest, HoldsEverythingThatIsPromised) {
  const auto result = run("a");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, "finished");
  for (const char* name : {"config.toml", "metrics.jsonl", "best.safetensors", "last.safetensors",
                           "state.safetensors", "result.json", "sessions.jsonl"}) {
    EXPECT_TRUE(fs::exists(root_ / "a" / name)) << name;
  }
  for (const auto& file : fs::directory_iterator(root_ / "a")) {
    EXPECT_NE(file.path().extension(), ".hdetach-tmp") << file.path();
  }
  EXPECT_EQ(files::read(root_ / "a/config.toml"), train::sealed_text(train::to_toml(config_)));

  std::istringstream lines(files::read(root_ / "a/metrics.jsonl"));
  int epoch = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto metrics = nlohmann::json::parse(line);
    EXPECT_EQ(metrics["epoch"], ++epoch);
    EXPECT_EQ(metrics["update"], epoch * 5);
    for (const char* key : {"train_loss", "valid_loss", "valid_accuracy", "grad_norm_mean",
                            "grad_norm_max", "clipped", "seconds", "updates_per_second"}) {
      EXPECT_TRUE(metrics[key].is_number()) << key;
    }
    EXPECT_GE(metrics["grad_norm_max"].get<double>(), metrics["grad_norm_mean"].get<double>());
  }
  EXPECT_EQ(epoch, 4);

  const auto weights = safetensors::parse(files::read(root_ / "a/last.safetensors"), "last");
  std::vector<std::string> names;
  for (const auto& array : weights.arrays) names.push_back(array.name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                             "bias_hh_l0", "head.weight", "head.bias"}));
  EXPECT_EQ(weights.find("weight_ih_l0")->shape, (std::vector<int64_t>{64, 1}));
  EXPECT_EQ(weights.find("head.weight")->shape, (std::vector<int64_t>{9, 16}));
}

TEST_F(RunFolderTest, StoppedAtAnyUpdateAndResumedItEndsTheSame) {
  run("whole");
  for (int64_t update = 1; update <= 20; ++update) {
    const std::string name = "stopped-" + std::to_string(update);
    EXPECT_FALSE(run(name, false, update).has_value() && update < 20) << update;
    EXPECT_TRUE(run(name, true).has_value());
    expect_equal_runs(root_ / "whole", root_ / name);
  }
}

TEST_F(RunFolderTest, FilesAheadOfTheStateAreMadeAgain) {
  run("whole");
  config_.epochs = 2;
  run("a");
  config_.epochs = 4;
  // As a process killed just before the state of epoch 3 leaves them: its line half written.
  files::append_line(root_ / "a/metrics.jsonl", R"({"epoch":3,"update":15,"train_lo)");
  fs::copy_file(root_ / "whole/best.safetensors", root_ / "a/best.safetensors",
                fs::copy_options::overwrite_existing);
  files::write(root_ / "a/last.safetensors", "");
  files::write(root_ / "a/state.safetensors.hdetach-tmp", "left over");
  EXPECT_TRUE(run("a", true).has_value());
  EXPECT_FALSE(fs::exists(root_ / "a/state.safetensors.hdetach-tmp"));
  EXPECT_EQ(metrics_without_times(root_ / "a"), metrics_without_times(root_ / "whole"));
  EXPECT_EQ(files::read(root_ / "a/last.safetensors"),
            files::read(root_ / "whole/last.safetensors"));
}

TEST_F(RunFolderTest, MoreEpochsMakeTheSameRunLonger) {
  run("whole");
  config_.epochs = 2;
  run("a");
  config_.epochs = 4;
  EXPECT_TRUE(run("a", true).has_value());
  expect_equal_runs(root_ / "whole", root_ / "a");
  EXPECT_EQ(files::read(root_ / "a/config.toml"), train::sealed_text(train::to_toml(config_)));
}

TEST_F(RunFolderTest, ARunIsNotTouchedWithoutResume) {
  run("a");
  const std::string before = files::read(root_ / "a/metrics.jsonl");
  const std::string error = error_of([&] { run("a"); });
  EXPECT_NE(error.find("holds a run already; --resume"), std::string::npos) << error;
  EXPECT_EQ(files::read(root_ / "a/metrics.jsonl"), before);
}

TEST_F(RunFolderTest, OtherSettingsAreRefusedByName) {
  run("a", false, 3);
  config_.lr = 5e-4;
  config_.detach = 0.25;
  const std::string error = error_of([&] { run("a", true); });
  EXPECT_NE(error.find("detach 0.5 (now 0.25), lr 0.001 (now 0.0005)"), std::string::npos) << error;
}

TEST_F(RunFolderTest, AFinishedRunIsReturnedAsItEnded) {
  const auto first = run("a");
  const std::string state = files::read(root_ / "a/state.safetensors");
  auto again = run("a", true);
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(std::exchange(again->notes, {}).empty());  // only the file has them
  EXPECT_EQ(to_json(*again), to_json(*first));
  EXPECT_EQ(files::read(root_ / "a/state.safetensors"), state);
}

TEST_F(RunFolderTest, ASecondProcessIsRefused) {
  const train::RunFolder folder(root_ / "a");
  const std::string error = error_of([&] { train::RunFolder second(root_ / "a"); });
  EXPECT_NE(error.find("in use by another process"), std::string::npos) << error;
}

TEST_F(RunFolderTest, StopsEarlyOnceTheGoalIsHeld) {
  config_.delay = 1;
  config_.symbols = 1;
  config_.encoding = "onehot";
  config_.lr = 0.02;
  config_.epochs = 400;
  config_.updates_per_epoch = 20;
  config_.stop_at = 0.9;
  config_.stop_epochs = 3;
  const auto result = run("a");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, "stopped-early");
  std::vector<double> accuracy;
  std::istringstream lines(files::read(root_ / "a/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    accuracy.push_back(nlohmann::json::parse(line)["valid_accuracy"]);
  }
  ASSERT_EQ(static_cast<int64_t>(accuracy.size()), result->epochs);
  int in_a_row = 0;
  for (size_t i = 0; i < accuracy.size(); ++i) {
    in_a_row = accuracy[i] >= 0.9 ? in_a_row + 1 : 0;
    EXPECT_EQ(in_a_row >= 3, i + 1 == accuracy.size()) << i;
  }
}

TEST_F(RunFolderTest, DivergenceIsRecordedAndEndsTheRun) {
  run("a", false, 3);
  poison("a");
  const auto result = run("a", true);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, "diverged");
  EXPECT_NE(result->message.find("at update 4 (epoch 1)"), std::string::npos) << result->message;
  EXPECT_EQ(run("a", true)->status, "diverged");
  config_.epochs = 500;
  EXPECT_EQ(run("a", true)->status, "diverged");
}

TEST_F(RunFolderTest, DivergenceCanBePassedOver) {
  config_.on_diverge = "continue";
  run("a", false, 3);
  poison("a");
  const auto result = run("a", true);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status, "finished");
  std::istringstream lines(files::read(root_ / "a/metrics.jsonl"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["skipped"], 2);  // updates 4 and 5
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["skipped"], 5);
  EXPECT_TRUE(nlohmann::json::parse(line)["train_loss"].is_null());
}

}  // namespace
}  // namespace hdetach
