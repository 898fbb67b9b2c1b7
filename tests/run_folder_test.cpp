// Run folders: what is in them, and that going on equals never having stopped.
#include "train/run_folder.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/files.h"
#include "formats/safetensors.h"
#include "run_files.h"
#include "stop_after.h"
#include "tiny_run.h"
#include "train/run.h"
#include "train/run_history.h"
#include "train/seal.h"

namespace hdetach {
namespace {

using train::Config;
namespace fs = std::filesystem;

class RunFolderTest : public TinyRun {
 protected:
  RunFolderTest() : TinyRun(/*epochs=*/4, /*updates_per_epoch=*/5) {}

  fs::path file(const std::string& name) const { return root_ / name; }

  // The state written again, whole, after `change` of one of its arrays.
  template <class Value>
  void change_state(const std::string& run, const char* array,
                    const std::function<void(Value*)>& change) {
    const fs::path path = file(run) / "state.safetensors";
    auto state = safetensors::parse(files::read(path), "state");
    std::vector<safetensors::View> views;
    for (const auto& each : state.arrays) {
      if (each.name == array) change(reinterpret_cast<Value*>(const_cast<char*>(each.data)));
      views.push_back({each.name, each.dtype, each.shape, each.data});
    }
    files::write(path, train::sealed(views, state.metadata));
  }

  // No learning rate breaks an LSTM's bounded states for sure; a bias that is not finite does.
  void poison(const std::string& name) {
    change_state<float>(name, "head.bias",
                        [](float* bias) { bias[0] = std::numeric_limits<float>::infinity(); });
  }

  std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
};

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

TEST_F(RunFolderTest, ADamagedStateIsRefusedWithItsName) {
  run("a", false, 7);
  files::write(root_ / "a/state.safetensors", "garbage");
  const std::string error = error_of([&] { run("a", true); });
  EXPECT_NE(error.find("state.safetensors"), std::string::npos) << error;
}

TEST_F(RunFolderTest, AFlippedBitIsFound) {
  config_.xray_every = 1;
  run("whole", false, 12);
  for (const char* name :
       {"state.safetensors", "best.safetensors", "config.toml", "metrics.jsonl", "xray.jsonl"}) {
    const std::string bytes = files::read(file("whole") / name);
    // Damage to the comment itself harms nothing.
    const size_t end = std::min(bytes.find("# checksum "), bytes.size());
    for (int i = 0; i < 40; ++i) {
      fs::remove_all(file("a"));
      fs::copy(file("whole"), file("a"));
      std::string damaged = bytes;
      damaged[end * i / 40] ^= static_cast<char>(1 << i % 8);
      files::write(file("a") / name, damaged);
      const std::string error = error_of([&] { run("a", true); });
      EXPECT_NE(error.find(file("a") / name), std::string::npos) << i << ": " << error;
      EXPECT_TRUE(files::read(file("a") / name) == damaged) << "what is left must stay";
    }
  }
}

TEST_F(RunFolderTest, FilesOfEarlierVersionsHaveNoChecksum) {
  run("whole");
  run("a", false, 12);
  for (const char* name : {"state.safetensors", "best.safetensors"}) {
    files::write(file("a") / name, without_notes(files::read(file("a") / name)));
  }
  files::write(file("a/config.toml"), train::to_toml(config_));
  EXPECT_TRUE(run("a", true).has_value());
  EXPECT_EQ(metrics_without_times(file("a")), metrics_without_times(file("whole")));
  EXPECT_TRUE(files::read(file("a/last.safetensors")) ==
              files::read(file("whole/last.safetensors")));
}

TEST_F(RunFolderTest, CountersThatNoRunCanHaveAreRefused) {
  run("whole", false, 12);  // two epochs of five updates, and two more
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const char* const names[] = {"update",
                               "epoch",
                               "sum of losses",
                               "sum of gradient norms",
                               "largest gradient norm",
                               "clipped",
                               "skipped",
                               "best epoch",
                               "best score",
                               "epochs at goal",
                               "seconds",
                               "seconds of the epoch"};
  for (size_t counter = 0; counter < std::size(names); ++counter) {
    const bool any_sign = names[counter] == std::string("sum of losses");
    for (const double value : {nan, -5.0, 1e18, std::numeric_limits<double>::infinity(), 2.5}) {
      const bool whole =
          counter < 2 || counter == 5 || counter == 6 || counter == 7 || counter == 9;
      if (value == 2.5 && !whole) continue;
      if (value == 1e18 && !whole) continue;
      if (value == -5 && any_sign) continue;
      fs::remove_all(file("a"));
      fs::copy(file("whole"), file("a"));
      change_state<double>("a", "progress", [&](double* saved) { saved[counter] = value; });
      const std::string error = error_of([&] { run("a", true); });
      const std::string wanted = fmt::format("state.safetensors: {} is {}", names[counter], value);
      EXPECT_NE(error.find(wanted), std::string::npos) << wanted << "\n" << error;
    }
  }
  for (const int64_t steps : {int64_t{-1}, int64_t{13}}) {
    fs::remove_all(file("a"));
    fs::copy(file("whole"), file("a"));
    change_state<int64_t>("a", "adam.steps", [&](int64_t* saved) { *saved = steps; });
    const std::string error = error_of([&] { run("a", true); });
    EXPECT_NE(error.find("steps of Adam is"), std::string::npos) << error;
  }
}

TEST_F(RunFolderTest, WhatIsMissingIsNamed) {
  config_.xray_every = 1;
  run("whole", false, 12);
  for (const char* name :
       {"state.safetensors", "best.safetensors", "config.toml", "metrics.jsonl", "xray.jsonl"}) {
    fs::remove_all(file("a"));
    fs::copy(file("whole"), file("a"));
    fs::remove(file("a") / name);
    for (const bool resume : {false, true}) {
      const std::string error = error_of([&] { run("a", resume); });
      const std::string wanted =
          resume ? (file("a") / name).string() : file("a").string() + ", which h";
      EXPECT_NE(error.find(wanted), std::string::npos) << name << ": " << error;
    }
    EXPECT_FALSE(fs::exists(file("a") / name));
  }
}

TEST_F(RunFolderTest, AMissingLineIsNamed) {
  run("whole", false, 17);
  const std::string all = files::read(file("whole/metrics.jsonl"));
  const size_t second = all.find('\n') + 1, third = all.find('\n', second) + 1;
  const std::pair<std::string, const char*> cases[] = {
      {all.substr(second), "metrics.jsonl:1: this is epoch 2, where 1 should stand"},
      {all.substr(0, second) + all.substr(third), "metrics.jsonl:2: this is epoch 3"},
      {all.substr(0, third), "metrics.jsonl has 2 whole lines, but the run is at epoch 3"},
      {all.substr(0, all.size() - 1),
       "metrics.jsonl has 2 whole lines, but the run is at epoch 3"}};
  for (const auto& [lines, wanted] : cases) {
    files::write(file("whole/metrics.jsonl"), lines);
    const std::string error = error_of([&] { run("whole", true); });
    EXPECT_NE(error.find(wanted), std::string::npos) << error;
    EXPECT_EQ(files::read(file("whole/metrics.jsonl")), lines);
  }
}

TEST_F(RunFolderTest, SettingsWhoseEndIsCutOffAreRefused) {
  run("whole", false, 17);
  const std::string all = files::read(file("whole/config.toml"));
  for (size_t end = all.find('\n') + 1; end < all.size(); end = all.find('\n', end) + 1) {
    files::write(file("whole/config.toml"), all.substr(0, end));
    const std::string error = error_of([&] { run("whole", true); });
    EXPECT_NE(error.find("config.toml is damaged"), std::string::npos) << all.substr(0, end);
  }
}

TEST_F(RunFolderTest, AFileOfAnotherRunIsRefused) {
  run("whole", false, 12);
  run("over");
  config_.seed = 2;
  run("other", false, 12);
  run("other-over");
  config_.seed = 1;
  const auto error_with = [&](const char* name, const char* of_run, const char* of_other) {
    fs::remove_all(file("a"));
    fs::copy(file(of_run), file("a"));
    fs::copy_file(file(of_other) / name, file("a") / name, fs::copy_options::overwrite_existing);
    return error_of([&] { run("a", true); });
  };
  for (const char* name : {"state.safetensors", "best.safetensors"}) {
    EXPECT_EQ(error_with(name, "whole", "other")
                  .find((file("a") / name).string() + " is of another run: seed 2 (now 1)"),
              0u)
        << name;
  }
  for (const char* name :
       {"state.safetensors", "best.safetensors", "last.safetensors", "result.json"}) {
    EXPECT_EQ(error_with(name, "over", "other-over")
                  .find((file("a") / name).string() + " is of another run: seed 2 (now 1)"),
              0u)
        << name;
  }
  EXPECT_NE(error_with("metrics.jsonl", "over", "other-over").find("metrics.jsonl is damaged"),
            std::string::npos);
}

// More epochs, or data in another place, do not make another run.
TEST_F(RunFolderTest, FilesOfTheSameRunWithFewerEpochsAreItsOwn) {
  run("a");
  config_.epochs += 1;
  run("a", true);
  EXPECT_EQ(error_of([&] { train::check_run(file("a")); }), "no error");
  run("whole");
  EXPECT_TRUE(files::read(file("a/best.safetensors")) ==
              files::read(file("whole/best.safetensors")));
}

TEST_F(RunFolderTest, ALostStateDoesNotBeginTheRunAgain) {
  run("whole");
  const auto error_without = [&](const std::vector<const char*>& names, int more_epochs) {
    fs::remove_all(file("a"));
    fs::copy(file("whole"), file("a"));
    for (const char* name : names) fs::remove(file("a") / name);
    config_.epochs += more_epochs;
    const std::string error = error_of([&] { run("a", true); });
    config_.epochs -= more_epochs;
    return error;
  };
  const std::string is_missing = file("a/state.safetensors").string() + " is missing, but ";
  EXPECT_EQ(error_without({"state.safetensors", "metrics.jsonl"}, 1)
                .find(is_missing + "there is a result.json"),
            0u);
  EXPECT_EQ(error_without({"state.safetensors", "metrics.jsonl", "result.json"}, 0)
                .find(is_missing + "there is a best.safetensors"),
            0u);
  EXPECT_EQ(error_without({"state.safetensors", "result.json"}, 0)
                .find(is_missing + "metrics.jsonl has epochs"),
            0u);
}

// At the end there is no later epoch that would write them.
TEST_F(RunFolderTest, LastWeightsThatWereLostAreWrittenAgain) {
  run("whole");
  for (const bool removed : {true, false}) {
    fs::remove_all(file("a"));
    fs::copy(file("whole"), file("a"));
    fs::remove(file("a/result.json"));
    const std::string bytes = files::read(file("a/last.safetensors"));
    if (removed) {
      fs::remove(file("a/last.safetensors"));
    } else {
      files::write(file("a/last.safetensors"), bytes.substr(0, bytes.size() - 1) + "!");
    }
    EXPECT_TRUE(run("a", true).has_value());
    expect_equal_runs(file("whole"), file("a"));
    EXPECT_NO_THROW(train::check_run(file("a")));
  }
}

// Otherwise two processes would write into one folder.
TEST_F(RunFolderTest, ARunWhoseLockWasRemovedWritesNoMore) {
  struct RemovesTheLock : train::StopAfter {
    explicit RemovesTheLock(fs::path lock) : StopAfter(0), lock(std::move(lock)) {}
    void updated(const train::Progress& progress, const train::Update&) override {
      if (progress.update == 7) fs::remove(lock);
    }
    fs::path lock;
  };
  const std::string error = error_of([&] {
    train::RunFolder folder(file("a"));
    RemovesTheLock observer(file("a/lock"));
    train::run(config_, folder, {false, "{}"}, observer, &observer.signal);
  });
  EXPECT_EQ(error.find(file("a/lock").string() + ": was removed while this process worked here"),
            0u)
      << error;
  run("whole");
  EXPECT_TRUE(run("a", true).has_value());
  expect_equal_runs(file("whole"), file("a"));
}

TEST_F(RunFolderTest, ChangedMetricsOfARunKeptWithoutItsStateAreFound) {
  run("a");
  for (const char* name : {"state.safetensors", "best.safetensors", "last.safetensors"}) {
    fs::remove(file("a") / name);
  }
  EXPECT_NO_THROW(train::check_run(file("a")));
  std::string lines = files::read(file("a/metrics.jsonl"));
  const size_t digit = lines.find_first_of("123456789", lines.find("valid_accuracy"));
  lines[digit] = lines[digit] == '9' ? '8' : '9';
  files::write(file("a/metrics.jsonl"), lines);
  EXPECT_EQ(error_of([&] {
              train::check_run(file("a"));
            }).find(file("a/metrics.jsonl").string() + " is damaged"),
            0u);
}

TEST_F(RunFolderTest, OneTraceOfARunIsEnoughToRefuseANewOne) {
  run("whole");
  files::write(file("whole/words.txt"), "a\n");
  for (const char* name : {"state.safetensors", "metrics.jsonl", "result.json", "best.safetensors",
                           "last.safetensors", "sessions.jsonl", "words.txt"}) {
    fs::remove_all(file("a"));
    fs::create_directory(file("a"));
    fs::copy(file("whole") / name, file("a") / name);
    for (const bool resume : {false, true}) {
      const std::string error = error_of([&] { run("a", resume); });
      EXPECT_NE(error.find(fmt::format("a run's {} but no config.toml", name)), std::string::npos)
          << error;
    }
  }
}

TEST_F(RunFolderTest, OtherImagesAreNoticed) {
  const fs::path sample = fs::path(HDETACH_TEST_DATA) / "mnist-sample";
  fs::copy(sample, file("data"));
  config_ = train::default_config("mnist");
  config_.data = file("data");
  config_.train_size = 40;
  config_.valid_size = 20;
  config_.hidden = 4;
  config_.batch = 10;
  config_.epochs = 2;
  run("whole");
  run("a", false, 3);
  std::string labels = files::read(file("data/train-labels-idx1-ubyte"));
  labels[30] = static_cast<char>((labels[30] + 1) % 10);  // one label of one image
  files::write(file("data/train-labels-idx1-ubyte"), labels);
  const std::string error = error_of([&] { run("a", true); });
  EXPECT_NE(error.find("was trained on other data than " + file("data").string() + " has now"),
            std::string::npos)
      << error;
  fs::copy(sample, file("data"),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  EXPECT_TRUE(run("a", true).has_value());
  expect_equal_runs(file("whole"), file("a"));
}

TEST_F(RunFolderTest, AResultThatIsNoneIsRefused) {
  run("a");
  const std::string path = file("a/result.json");
  auto result = nlohmann::json::parse(files::read(path));
  result["status"] = "finishes";
  const auto error_with = [&](const std::string& text) {
    files::write(path, text);
    return error_of([&] { run("a", true); });
  };
  EXPECT_EQ(error_with(result.dump()).find(path + " is damaged"), 0u);
  result.erase("checksum");
  const std::string error = error_with(train::sealed_json(result.dump()));
  EXPECT_NE(error.find("result.json:1: status is \"finishes\""), std::string::npos) << error;
}

TEST_F(RunFolderTest, AChangedResultIsFound) {
  run("whole");
  const std::string bytes = files::read(file("whole/result.json"));
  ASSERT_EQ(bytes.back(), '\n');
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const bool cut : {false, true}) {
      std::string damaged = cut ? bytes.substr(0, at) : bytes;
      if (!cut) damaged[at] ^= static_cast<char>(1 << at % 8);
      files::write(file("whole/result.json"), damaged);
      EXPECT_EQ(error_of([&] {
                  train::check_run(file("whole"));
                }).find(file("whole/result.json").string()),
                0u)
          << at << ": " << damaged;
    }
  }
  files::write(file("whole/result.json"), bytes);
  EXPECT_NO_THROW(train::check_run(file("whole")));
}

// A pipe that nobody writes to would be waited for.
TEST_F(RunFolderTest, WhatIsNoFileIsRefused) {
  run("whole", false, 12);
  for (const char* name :
       {"state.safetensors", "best.safetensors", "last.safetensors", "config.toml", "metrics.jsonl",
        "xray.jsonl", "result.json", "sessions.jsonl", "lock"}) {
    fs::remove_all(file("a"));
    fs::copy(file("whole"), file("a"));
    fs::remove(file("a") / name);
    ASSERT_EQ(::mkfifo((file("a") / name).c_str(), 0600), 0);
    const std::string error = error_of([&] { run("a", true); });
    EXPECT_EQ(error, (file("a") / name).string() + ": not a file");
  }
}

// For who copied a run without what only going on needs.
TEST_F(RunFolderTest, WhatIsThereCanBeReadWithoutTheRest) {
  run("a");
  for (const char* name : {"last.safetensors", "state.safetensors"}) {
    fs::remove(file("a") / name);
    EXPECT_EQ(error_of([&] { train::check_files(file("a")); }), "no error") << name;
    const std::string error = error_of([&] { train::check_run(file("a")); });
    EXPECT_EQ(error.find((file("a") / name).string() + " is missing"), 0u) << error;
  }
}

TEST_F(RunFolderTest, AStateOfAnotherSizeIsRefusedWithShapes) {
  run("a", false, 7);
  config_.hidden = 8;
  run("b", false, 7);
  fs::copy_file(root_ / "a/state.safetensors", root_ / "b/state.safetensors",
                fs::copy_options::overwrite_existing);
  const std::string error = error_of([&] { run("b", true); });
  EXPECT_NE(error.find("weight_ih_l0 is F32 [64,1]; the run needs F32 [32,1]"), std::string::npos)
      << error;
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
