// hdetach sweep as its users meet it: tiny real runs of the built program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/program.h"

namespace {

namespace fs = std::filesystem;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::lines;
using hdetach::program::Result;
using hdetach::program::run;
using hdetach::program::TemporaryFolder;
using nlohmann::json;

class Sweep : public testing::Test {
 protected:
  // Two settings and two seeds; `top` and `base` are added to the file.
  std::string file(const std::string& top, const std::string& base = "") const {
    const fs::path path = folder_ / "tiny.toml";
    std::ofstream(path) << "task = \"copy\"\nseeds = [1, 2]\n"
                        << top << "\n[base]\nsymbols = 2\n"
                        << "delay = 4\nhidden = 4\nbatch = 2\ntrain-size = 20\nvalid-size = 10\n"
                        << "updates-per-epoch = 3\n"
                        << base << "\n[[setting]]\nname = \"plain\"\n"
                        << "[[setting]]\nname = \"detach-0.5\"\ndetach = 0.5\n";
    return path.string();
  }

  std::string arguments(const std::string& path) const {
    return "sweep " + path + " --out " + (folder_ / "out").string();
  }

  fs::path run_folder(const std::string& name) const { return folder_ / ("out/tiny/" + name); }

  // Each process that works on a run adds a line.
  int sessions(const std::string& name) const {
    return lines(content(run_folder(name) / "sessions.jsonl"));
  }

  const TemporaryFolder folder_;
};

bool wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST_F(Sweep, DryRunListsThePapersFifteenRunsAndWritesNothing) {
  const Result result = run("sweep " HDETACH_EXPERIMENTS "/copy-100.toml --dry-run --out " +
                            (folder_ / "out").string());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines(result.out), 16) << result.out;
  for (const char* setting : {"plain", "detach-0.25", "detach-0.5"}) {
    for (int seed = 1; seed <= 5; ++seed) {
      const std::string name = setting + std::string("/seed-") + std::to_string(seed) + " ";
      EXPECT_TRUE(contains(result.out, "out/copy-100/" + name)) << name;
    }
  }
  EXPECT_TRUE(contains(result.out, "--detach 0.25 --anneal-epochs 40")) << result.out;
  EXPECT_TRUE(contains(result.out, "\n15 runs, 15 to do\n")) << result.out;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Sweep, RunsEverythingOnceAndShowsItAgain) {
  const std::string command = arguments(file("eval-delays = [6, 8]", "epochs = 2"));
  const Result result = run(command);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "plain/seed-1       finished, 2 epochs, best ")) << result.out;
  EXPECT_TRUE(contains(result.out, "plain       2/2 ")) << result.out;
  EXPECT_TRUE(contains(result.out, "o plain   # detach-0.5")) << result.out;
  EXPECT_EQ(content(folder_ / "out/tiny/tiny.toml"), content(folder_ / "tiny.toml"));
  if (contains(result.out, "page: none: ")) {
    EXPECT_TRUE(contains(result.out, "page: none: this hdetach has no page: ")) << result.out;
  } else {
    const fs::path page = folder_ / "out/tiny/report.html";
    EXPECT_TRUE(contains(result.out, "page: " + page.string())) << result.out;
    EXPECT_TRUE(contains(content(page), "\"detach-0.5/seed-2\""));
    EXPECT_TRUE(contains(content(page), "\"delay 8, %\""));
  }
  for (const char* name : {"plain/seed-1", "detach-0.5/seed-2"}) {
    EXPECT_EQ(sessions(name), 1) << name;
    EXPECT_TRUE(fs::exists(run_folder(name) / "result.json")) << name;
    const json eval = json::parse(content(run_folder(name) / "eval.json"));
    EXPECT_EQ(eval["accuracy"][1]["delay"], 8) << name;
    EXPECT_FALSE(fs::exists(run_folder(name) / "eval.partial")) << name;
  }

  const auto evaluated = fs::last_write_time(run_folder("plain/seed-1") / "eval.json");
  const Result again = run(command + " --json");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const json summary = json::parse(again.out);
  EXPECT_EQ(summary["settings"][1]["over"], 2);
  EXPECT_EQ(summary["settings"][1]["eval"][0]["accuracy"]["runs"], 2);
  EXPECT_EQ(summary["failed"].size(), 0u);
  EXPECT_EQ(summary["interrupted"], false);
  EXPECT_EQ(sessions("plain/seed-1"), 1);
  EXPECT_EQ(fs::last_write_time(run_folder("plain/seed-1") / "eval.json"), evaluated);

  // Another place for the threshold or the delays changes no run; another setting does.
  const Result dry = run(arguments(file("eval-delays = [6, 9]", "epochs = 2")) + " --dry-run");
  EXPECT_TRUE(contains(dry.out, "4 runs, 4 to do")) << dry.out;
  const Result changed = run(arguments(file("", "epochs = 2\nlr = 0.5")));
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_TRUE(contains(changed.err,
                       "out/tiny/plain/seed-1 was trained with other settings: lr 0.001 (now 0.5)"))
      << changed.err;
  EXPECT_EQ(sessions("plain/seed-1"), 1);
}

TEST_F(Sweep, AFailedRunFailsTheSweepAtItsEndAndNoOther) {
  fs::create_directories(run_folder("plain/seed-1") / "lock");  // where train wants a file
  fs::create_directories(run_folder("plain/seed-2"));
  std::ofstream(run_folder("plain/seed-2") / "result.json")
      << R"({"status":"diverged","epochs":0,"updates":3,"best_epoch":0,"best_valid_accuracy":-1,)"
         R"("seconds":1,"message":"the loss is inf"})";
  const Result result = run(arguments(file("", "epochs = 1")) + " --quiet");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "2 of 4 runs failed: plain/seed-1, plain/seed-2")) << result.err;
  EXPECT_TRUE(contains(result.err,
                       "plain/seed-1: training ended with exit code 1\n  hdetach: "
                       "error: "))
      << result.err;
  EXPECT_TRUE(contains(result.err, "plain/seed-2: diverged: the loss is inf")) << result.err;
  EXPECT_TRUE(contains(result.out, "detach-0.5  2/2 ")) << result.out;
  EXPECT_EQ(sessions("plain/seed-2"), 0);  // not tried again
}

TEST_F(Sweep, OnlyKeepsTheNamedRuns) {
  const std::string command = arguments(file("", "epochs = 1"));
  const Result listed = run(command + " --dry-run --json --only plain/seed-2 --only 0.5/seed-1");
  const json runs = json::parse(listed.out)["runs"];
  ASSERT_EQ(runs.size(), 2u) << listed.out;
  EXPECT_EQ(runs[0]["run"], "detach-0.5/seed-1");
  EXPECT_EQ(runs[1]["run"], "plain/seed-2");
  EXPECT_EQ(run(command + " --only plain/seed-2 --quiet").exit_code, 0);
  EXPECT_TRUE(fs::exists(run_folder("plain/seed-2") / "result.json"));
  EXPECT_FALSE(fs::exists(run_folder("plain/seed-1")));
  const Result none = run(command + " --only seed-7");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "--only seed-7: no run")) << none.err;
}

TEST_F(Sweep, ErrorsOfTheFileAreUsageErrorsWithTheirPlace) {
  const Result bad = run(arguments(file("treshold = 0.5")));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_TRUE(contains(bad.err, "tiny.toml:3: a sweep has no key \"treshold\"")) << bad.err;
  EXPECT_EQ(run(arguments((folder_ / "missing.toml").string())).exit_code, 1);
  EXPECT_EQ(run("sweep").exit_code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

// A sweep of long runs in the background.
class LongSweep : public Sweep {
 protected:
  void SetUp() override {
    const std::string path = file("", "epochs = 1000000"), out = folder_ / "out";
    sweep_ = fork();
    if (sweep_ == 0) {
      const int log = open((folder_ / "log").c_str(), O_WRONLY | O_CREAT, 0666);
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
      execl(HDETACH_PROGRAM, "hdetach", "sweep", path.c_str(), "--out", out.c_str(), "--jobs", "2",
            nullptr);
      _exit(127);
    }
    ASSERT_TRUE(wait_for([&] { return under_way("plain") && under_way("detach-0.5"); })) << log();
  }

  bool under_way(const std::string& setting) const {
    return lines(content(run_folder(setting + "/seed-1") / "metrics.jsonl")) > 1;
  }

  bool unlocked(const std::string& name) const {
    const int lock = open((run_folder(name) / "lock").c_str(), O_RDWR | O_CLOEXEC);
    const bool free = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
    close(lock);
    return free;
  }

  int end_by(int signal) const {
    kill(sweep_, signal);
    int status = 0;
    waitpid(sweep_, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  std::string log() const { return content(folder_ / "log"); }

  pid_t sweep_ = 0;
};

TEST_F(LongSweep, CtrlCSavesTheRunsAndShowsTheTableSoFar) {
  EXPECT_EQ(end_by(SIGINT), 130) << log();
  for (const char* name : {"plain/seed-1", "detach-0.5/seed-1"}) {
    EXPECT_TRUE(unlocked(name)) << name;
    EXPECT_TRUE(fs::exists(run_folder(name) / "state.safetensors")) << name;
    EXPECT_TRUE(contains(content(run_folder(name) / "train.log"), "saved; go on with")) << name;
  }
  EXPECT_TRUE(contains(log(), "plain       0/2 ")) << log();
  EXPECT_TRUE(contains(log(), "saved; the same command goes on from here")) << log();
  EXPECT_FALSE(fs::exists(run_folder("plain/seed-2")));
}

TEST_F(LongSweep, TerminationIsToldApart) { EXPECT_EQ(end_by(SIGTERM), 143) << log(); }

TEST_F(LongSweep, RunsSaveAndEndWhenTheSweepIsKilled) {
  EXPECT_EQ(end_by(SIGKILL), 137);
  for (const char* name : {"plain/seed-1", "detach-0.5/seed-1"}) {
    EXPECT_TRUE(wait_for([&] { return unlocked(name); })) << name;
    EXPECT_TRUE(contains(content(run_folder(name) / "train.log"), "saved; go on with")) << name;
  }
}

}  // namespace
