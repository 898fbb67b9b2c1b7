// Runs killed at random moments and resumed each time, with any number of threads and jobs, equal
// those that never stopped.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "op/random_bits.h"
#include "program.h"
#include "run_files.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct KilledRun {
  const char* name;
  std::vector<std::string> arguments;
};

const KilledRun kCopy = {"copy",
                         {"train", "copy", "--delay=6", "--symbols=2", "--hidden=16", "--batch=8",
                          "--detach=0.5", "--train-size=500", "--valid-size=100",
                          "--updates-per-epoch=40", "--epochs=120", "--xray-every=10"}};
const KilledRun kMnist = {"mnist",
                          {"train", "mnist", "--data=" HDETACH_TEST_DATA "/mnist-sample",
                           "--train-size=180", "--valid-size=20", "--hidden=8", "--batch=20",
                           "--detach=0.5", "--updates-per-epoch=5", "--epochs=40"}};
const KilledRun kCaption = {
    "caption",
    {"train", "caption", "--data=generated", "--wordnet=/nonexistent", "--train-size=40",
     "--valid-size=5", "--hidden=64", "--embedding=64", "--batch=8", "--captions=2", "--beam=1",
     "--detach=0.25", "--updates-per-epoch=4", "--epochs=15"}};
// The same copying run in two settings and two seeds.
const KilledRun kSweep = {"sweep", {"sweep"}};

void PrintTo(const KilledRun& kind, std::ostream* out) { *out << kind.name; }

class Kill : public testing::TestWithParam<KilledRun> {
 protected:
  Kill() {
    std::ofstream(root_ / "four.toml")
        << "task = \"copy\"\nseeds = [1, 2]\n[base]\nsymbols = 2\ndelay = 6\nhidden = 16\n"
        << "batch = 8\ntrain-size = 500\nvalid-size = 100\nupdates-per-epoch = 40\nepochs = 20\n"
        << "[[setting]]\nname = \"plain\"\n"
        << "[[setting]]\nname = \"detach-0.5\"\ndetach = 0.5\n";
  }

  bool is_sweep() const { return GetParam().arguments[0] == "sweep"; }
  double draw() { return hdetach::random_uniform(getpid(), draws_++); }

  // With one or two threads and jobs. The child leads a process group, of which its own are part.
  pid_t start(const fs::path& out) {
    std::vector<std::string> arguments = GetParam().arguments;
    arguments.insert(arguments.begin(), HDETACH_PROGRAM);
    arguments.push_back(draw() < 0.5 ? "--threads=1" : "--threads=2");
    arguments.push_back("--out=" + out.string());
    arguments.push_back("--quiet");
    if (is_sweep()) {
      arguments.push_back(draw() < 0.5 ? "--jobs=1" : "--jobs=2");
      arguments.push_back((root_ / "four.toml").string());
    } else {
      arguments.push_back("--resume");
    }
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    setpgid(child, child);
    return child;
  }

  // The exit status, or -1 when the child was killed.
  static int finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Whether the child ends by itself within that time.
  static bool ends_within(pid_t child, double seconds) {
    const auto end = Clock::now() + Seconds(seconds);
    while (Clock::now() < end) {
      siginfo_t info = {};
      waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == child) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  void expect_equal(const fs::path& whole, const fs::path& killed) {
    if (!is_sweep()) return expect_equal_runs(whole, killed);
    for (const char* run :
         {"plain/seed-1", "plain/seed-2", "detach-0.5/seed-1", "detach-0.5/seed-2"}) {
      expect_equal_runs(whole / "four" / run, killed / "four" / run);
    }
  }

  const hdetach::TemporaryFolder root_;
  uint64_t draws_ = 0;
};

TEST_P(Kill, AtRandomMomentsChangesNothing) {
  const char* wanted = std::getenv("HDETACH_KILLS");  // ./run test --full asks for more
  const int kills = wanted ? std::atoi(wanted) : 3;
  ASSERT_GT(kills, 0);
  SCOPED_TRACE(testing::Message() << "drawn from seed " << getpid());
  const auto begin = Clock::now();
  ASSERT_EQ(finish(start(root_ / "whole")), 0);
  double whole = Seconds(Clock::now() - begin).count();

  int killed = 0, runs = 0;
  for (; killed < kills; ++runs) {  // the same run again and again
    const fs::path folder = root_ / "killed";
    fs::remove_all(folder);
    for (bool over = false, anew = true; !over; anew = false) {
      const auto started = Clock::now();
      const pid_t child = start(folder);
      if (killed < kills && !ends_within(child, draw() * whole)) kill(-child, SIGKILL);
      const int status = finish(child);
      ASSERT_TRUE(status == -1 || status == 0) << status;
      over = status == 0;
      killed += !over;
      // The first run may have shared the machine with others: then most kills would come too late.
      if (over && anew) whole = std::min(whole, Seconds(Clock::now() - started).count());
    }
    expect_equal(root_ / "whole", folder);
    if (HasFailure()) break;
  }
  fmt::print("{}: {} kills in {} runs, all equal to the bit\n", GetParam().name, killed, runs);
}

INSTANTIATE_TEST_SUITE_P(Runs, Kill, testing::Values(kCopy, kMnist, kCaption, kSweep),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
