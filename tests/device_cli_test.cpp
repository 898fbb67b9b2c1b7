// --device of train, eval and sweep, and runs that train together, as users of the program meet
// them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/cuda/device.h"
#include "run_files.h"
#include "tests/program.h"

namespace {

namespace fs = std::filesystem;
using hdetach::cuda_present;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::lines;
using hdetach::program::Result;
using hdetach::program::run;

class DeviceCli : public testing::Test {
 protected:
  static constexpr const char* kSettings =
      "delay = 4\nsymbols = 2\nhidden = 8\nbatch = 4\ntrain-size = 50\nvalid-size = 20\n"
      "updates-per-epoch = 6\n";

  std::string path(const std::string& name) const { return (root_ / name).string(); }

  void write_run(const std::string& name, const std::string& more, int epochs = 3) const {
    std::ofstream(path(name + ".toml")) << "task = \"copy\"\nepochs = " << epochs << "\n"
                                        << kSettings << more;
  }

  // As `hdetach train` alone has it.
  void train_alone(const std::string& name, const std::string& out,
                   const std::string& before = "") const {
    const Result result =
        run("train copy --quiet --config " + path(name + ".toml") + " --out " + path(out), before);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  std::string sweep_file() const {
    std::ofstream(path("tiny.toml"))
        << "task = \"copy\"\nseeds = [1, 2]\neval-delays = [6]\n[base]\n"
        << "epochs = 3\n"
        << kSettings << "[[setting]]\nname = \"plain\"\n"
        << "[[setting]]\nname = \"detach-0.5\"\ndetach = 0.5\n";
    return path("tiny.toml");
  }

  const hdetach::TemporaryFolder root_;
};

TEST_F(DeviceCli, WithoutAGpuTheCpuTrainsAndWhatNeedsOneSaysSoAndWritesNothing) {
  const std::string without_gpu = "CUDA_VISIBLE_DEVICES=";
  write_run("a", "seed = 1\n");
  train_alone("a", "a", without_gpu);
  for (const std::string& command :
       {"train copy --device cuda --out " + path("new"), "eval " + path("a") + " --device cuda",
        "sweep " + sweep_file() + " --device cuda --out " + path("new")}) {
    const Result result = run(command, without_gpu);
    EXPECT_EQ(result.exit_code, 2) << command << result.err;
    EXPECT_TRUE(contains(result.err, "--device is cuda, but ")) << command << result.err;
    EXPECT_FALSE(fs::exists(path("new"))) << command;
  }
}

TEST_F(DeviceCli, RunsTogetherAreThoseOfRunsAlone) {
  write_run("a", "seed = 1\n");
  write_run("b", "seed = 2\ndetach = 0.5\nlr = 0.01\n", 2);  // ends earlier
  const Result result = run("train together " + path("a.toml") + " " + path("b.toml"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* name : {"a", "b"}) {
    const std::string alone = std::string("alone-") + name;
    train_alone(name, alone);
    expect_equal_runs(path(alone), path(name));
    EXPECT_TRUE(contains(content(path(name) + "/train.log"), "all epochs done after")) << name;
  }
}

TEST_F(DeviceCli, ARunThatCannotBeginDoesNotHinderTheOthers) {
  write_run("good", "seed = 1\n");
  write_run("bad", "seed = 2\n");
  fs::create_directories(path("bad/lock"));  // where a file should be
  const Result result = run("train together " + path("bad.toml") + " " + path("good.toml"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "1 of 2 runs failed")) << result.err;
  EXPECT_TRUE(contains(content(path("bad/train.log")), "hdetach: error: ")) << result.err;
  EXPECT_TRUE(fs::exists(path("good/result.json")));
}

TEST_F(DeviceCli, ASweepOnAGpuTrainsItsRunsTogether) {
  if (!cuda_present()) GTEST_SKIP() << "NOT TESTED, sweep --device cuda: there is no GPU";
  const std::string command = "sweep " + sweep_file() + " --device cuda --out " + path("out");
  const Result result = run(command + " --replicas 3");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* name :
       {"plain/seed-1", "plain/seed-2", "detach-0.5/seed-1", "detach-0.5/seed-2"}) {
    const std::string folder = path("out/tiny/") + name, alone = path("alone/") + name;
    EXPECT_TRUE(fs::exists(folder + "/eval.json")) << name;
    EXPECT_EQ(lines(content(folder + "/sessions.jsonl")), 1) << name;
    const Result single =
        run("train copy --quiet --config " + folder + "/config.toml --out " + alone);
    ASSERT_EQ(single.exit_code, 0) << single.err;
    expect_equal_runs(alone, folder);
  }
  // The device is a setting of the run: the CPU would make another.
  const Result other = run("sweep " + path("tiny.toml") + " --out " + path("out"));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(contains(other.err, "device cuda (now cpu)")) << other.err;
  // Its models can be tried anywhere.
  EXPECT_EQ(run("eval " + path("out/tiny/plain/seed-1") + " --delay 5 --device cpu").exit_code, 0);
}

}  // namespace
