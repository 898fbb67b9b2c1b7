// Files of a run that are damaged, missing or of another run: each is refused by its name.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "run_files.h"
#include "run_folder.h"
#include "stop_after.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/run_history.h"

namespace hdetach {
namespace {

using train::Config;
namespace fs = std::filesystem;

using RunChecks = RunFolderTest;

TEST_F(RunChecks, ADamagedStateIsRefusedWithItsName) {
  run("a", false, 7);
  files::write(root_ / "a/state.safetensors", "garbage");
  const std::string error = error_of([&] { run("a", true); });
  EXPECT_NE(error.find("state.safetensors"), std::string::npos) << error;
}

TEST_F(RunChecks, AFlippedBitIsFound) {
  config_.xray_every = 1;
  run("whole", false, 12);
  for (const char* name :
       {"state.safetensors", "best.safetensors", "config.toml", "metrics.jsonl", "xray.jsonl"}) {
    const std::string bytes = files::read(file("whole") / name);
    // Damage to the comment itself harms nothing.
    const size_t end = std::min(bytes.find("# checksum "), bytes.size());
    for (int i = 0; i < 40; ++i) {
      copy_run("whole", "a");
      std::string damaged = bytes;
      damaged[end * i / 40] ^= static_cast<char>(1 << i % 8);
      files::write(file("a") / name, damaged);
      const std::string error = error_of([&] { run("a", true); });
      EXPECT_NE(error.find(file("a") / name), std::string::npos) << i << ": " << error;
      EXPECT_TRUE(files::read(file("a") / name) == damaged) << "what is left must stay";
    }
  }
}

TEST_F(RunChecks, FilesOfEarlierVersionsHaveNoChecksum) {
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

TEST_F(RunChecks, CountersThatNoRunCanHaveAreRefused) {
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
      copy_run("whole", "a");
      change_state<double>("a", "progress", [&](double* saved) { saved[counter] = value; });
      const std::string error = error_of([&] { run("a", true); });
      const std::string wanted = fmt::format("state.safetensors: {} is {}", names[counter], value);
      EXPECT_NE(error.find(wanted), std::string::npos) << wanted << "\n" << error;
    }
  }
  for (const int64_t steps : {int64_t{-1}, int64_t{13}}) {
    copy_run("whole", "a");
    change_state<int64_t>("a", "adam.steps", [&](int64_t* saved) { *saved = steps; });
    const std::string error = error_of([&] { run("a", true); });
    EXPECT_NE(error.find("steps of Adam is"), std::string::npos) << error;
  }
}

TEST_F(RunChecks, WhatIsMissingIsNamed) {
  config_.xray_every = 1;
  run("whole", false, 12);
  for (const char* name :
       {"state.safetensors", "best.safetensors", "config.toml", "metrics.jsonl", "xray.jsonl"}) {
    copy_run("whole", "a");
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

TEST_F(RunChecks, AMissingLineIsNamed) {
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

TEST_F(RunChecks, SettingsWhoseEndIsCutOffAreRefused) {
  run("whole", false, 17);
  const std::string all = files::read(file("whole/config.toml"));
  for (size_t end = all.find('\n') + 1; end < all.size(); end = all.find('\n', end) + 1) {
    files::write(file("whole/config.toml"), all.substr(0, end));
    const std::string error = error_of([&] { run("whole", true); });
    EXPECT_NE(error.find("config.toml is damaged"), std::string::npos) << all.substr(0, end);
  }
}

TEST_F(RunChecks, AFileOfAnotherRunIsRefused) {
  run("whole", false, 12);
  run("over");
  config_.seed = 2;
  run("other", false, 12);
  run("other-over");
  config_.seed = 1;
  const auto error_with = [&](const char* name, const char* of_run, const char* of_other) {
    copy_run(of_run, "a");
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
TEST_F(RunChecks, FilesOfTheSameRunWithFewerEpochsAreItsOwn) {
  run("a");
  config_.epochs += 1;
  run("a", true);
  EXPECT_EQ(error_of([&] { train::check_run(file("a")); }), "no error");
  run("whole");
  EXPECT_TRUE(files::read(file("a/best.safetensors")) ==
              files::read(file("whole/best.safetensors")));
}

TEST_F(RunChecks, ALostStateDoesNotBeginTheRunAgain) {
  run("whole");
  const auto error_without = [&](const std::vector<const char*>& names, int more_epochs) {
    copy_run("whole", "a");
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

TEST_F(RunChecks, LastWeightsThatWereLostAreWrittenAgain) {
  run("whole");
  for (const bool removed : {true, false}) {
    copy_run("whole", "a");
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
TEST_F(RunChecks, ARunWhoseLockWasRemovedWritesNoMore) {
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

TEST_F(RunChecks, ChangedMetricsOfARunKeptWithoutItsStateAreFound) {
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

TEST_F(RunChecks, OneTraceOfARunIsEnoughToRefuseANewOne) {
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

TEST_F(RunChecks, OtherImagesAreNoticed) {
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

TEST_F(RunChecks, AResultThatIsNoneIsRefused) {
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

TEST_F(RunChecks, AChangedResultIsFound) {
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

TEST_F(RunChecks, WhatIsNoFileIsRefused) {
  run("whole", false, 12);
  for (const char* name :
       {"state.safetensors", "best.safetensors", "last.safetensors", "config.toml", "metrics.jsonl",
        "xray.jsonl", "result.json", "sessions.jsonl", "lock"}) {
    copy_run("whole", "a");
    fs::remove(file("a") / name);
    ASSERT_EQ(::mkfifo((file("a") / name).c_str(), 0600), 0);
    const std::string error = error_of([&] { run("a", true); });
    EXPECT_EQ(error, (file("a") / name).string() + ": not a file");
  }
}

// For who copied a run without what only going on needs.
TEST_F(RunChecks, WhatIsThereCanBeReadWithoutTheRest) {
  run("a");
  for (const char* name : {"last.safetensors", "state.safetensors"}) {
    fs::remove(file("a") / name);
    EXPECT_EQ(error_of([&] { train::check_files(file("a")); }), "no error") << name;
    const std::string error = error_of([&] { train::check_run(file("a")); });
    EXPECT_EQ(error.find((file("a") / name).string() + " is missing"), 0u) << error;
  }
}

TEST_F(RunChecks, AStateOfAnotherSizeIsRefusedWithShapes) {
  run("a", false, 7);
  config_.hidden = 8;
  run("b", false, 7);
  fs::copy_file(root_ / "a/state.safetensors", root_ / "b/state.safetensors",
                fs::copy_options::overwrite_existing);
  const std::string error = error_of([&] { run("b", true); });
  EXPECT_NE(error.find("weight_ih_l0 is F32 [64,1]; the run needs F32 [32,1]"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace hdetach
