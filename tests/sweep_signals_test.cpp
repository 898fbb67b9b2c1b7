// hdetach sweep while it works: signals to it and to its runs, and a second sweep beside it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/program.h"
#include "tests/tiny_sweep.h"

namespace {

namespace fs = std::filesystem;
using hdetach::TinySweep;
using hdetach::wait_for;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::lines;
using hdetach::program::Result;
using hdetach::program::run;

// A sweep of long runs in the background.
class LongSweep : public TinySweep {
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

TEST_F(LongSweep, ASecondSweepOnTheFolderIsRefused) {
  const std::string path = (folder_ / "tiny.toml").string();
  const Result second = run(arguments(path));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(contains(second.err, "another sweep works on " + (folder_ / "out/tiny").string() +
                                       "; wait for it or end it, or name another place by --out"))
      << second.err;
  EXPECT_EQ(run(arguments(path) + " --dry-run").exit_code, 0);
  EXPECT_EQ(sessions("plain/seed-1"), 1);
  EXPECT_EQ(end_by(SIGKILL), 137);
  const int lock = open((folder_ / "out/tiny/.lock").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);  // free at once, whatever the children still do
  close(lock);
  EXPECT_TRUE(wait_for([&] { return unlocked("plain/seed-1") && unlocked("detach-0.5/seed-1"); }));
}

TEST_F(LongSweep, ARunWhoseProcessIsKilledIsStartedOnceMore) {
  const std::string children =
      "/proc/" + std::to_string(sweep_) + "/task/" + std::to_string(sweep_) + "/children";
  const auto child_of = [&](const std::string& name) {
    std::istringstream all(content(children));
    for (pid_t child; all >> child;) {
      if (contains(content("/proc/" + std::to_string(child) + "/cmdline"), name + ".toml")) {
        return child;
      }
    }
    return pid_t{0};
  };
  for (const int started : {1, 2}) {
    ASSERT_TRUE(wait_for([&] { return sessions("plain/seed-1") == started; })) << log();
    const pid_t child = child_of("plain/seed-1");
    if (child == 0) GTEST_SKIP() << "this system does not list the children of a process";
    kill(child, SIGKILL);
    // The next run in its place, or the same one again.
    ASSERT_TRUE(wait_for([&] { return child_of("plain/seed-1") != child; })) << log();
  }
  EXPECT_TRUE(wait_for([&] {
    return contains(log(), "failed: training was ended by signal 9 (Killed), for the second time");
  })) << log();
  const std::string of_run = content(run_folder("plain/seed-1") / "train.log");
  EXPECT_TRUE(contains(of_run, "training was ended by signal 9 (Killed); it is started once more"))
      << of_run;
  EXPECT_EQ(sessions("plain/seed-1"), 2);
  EXPECT_EQ(end_by(SIGINT), 130) << log();
}

// A pipe that nobody reads from would be waited for.
}  // namespace
