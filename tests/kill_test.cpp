// A run killed at random moments and resumed each time equals one that never stopped.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "op/random_bits.h"
#include "program.h"
#include "run_files.h"

namespace {

namespace fs = std::filesystem;

pid_t start(const fs::path& out, int epochs) {
  std::vector<std::string> arguments = {HDETACH_PROGRAM,
                                        "train",
                                        "copy",
                                        "--delay=6",
                                        "--symbols=2",
                                        "--hidden=16",
                                        "--batch=8",
                                        "--detach=0.5",
                                        "--train-size=500",
                                        "--valid-size=100",
                                        "--updates-per-epoch=40",
                                        "--epochs=" + std::to_string(epochs),
                                        "--threads=1",
                                        "--resume",
                                        "--quiet",
                                        "--out=" + out.string()};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execv(argv[0], argv.data());
    _exit(127);
  }
  return child;
}

// The exit status, or -1 when the child was killed.
int finish(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Kill, ARunKilledAtRandomMomentsEqualsOneThatWasNot) {
  const char* wanted = std::getenv("HDETACH_KILLS");  // ./run test --full asks for 20
  const int kills = wanted ? std::atoi(wanted) : 3;
  ASSERT_GT(kills, 0);
  const int epochs = 100 * kills;
  const hdetach::program::TemporaryFolder root;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(finish(start(root / "whole", epochs)), 0);
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;

  SCOPED_TRACE(testing::Message() << "moments drawn from seed " << getpid());
  int killed = 0;
  for (int i = 0; killed < kills; ++i) {
    const pid_t child = start(root / "killed", epochs);
    // Up to what an uninterrupted run needs for about the epochs of one kill, start included.
    const double wait = hdetach::random_uniform(getpid(), i) * (0.4 + 1.2 * whole.count() / kills);
    std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    kill(child, SIGKILL);
    const int status = finish(child);
    if (status == -1) ++killed;
    ASSERT_TRUE(status == -1 || status == 0) << status;
    ASSERT_LT(i, 100 * kills);
    if (status == 0 && killed < kills) {  // over too soon: once more from the start
      fs::remove_all(root / "killed");
      killed = 0;
    }
  }
  ASSERT_EQ(finish(start(root / "killed", epochs)), 0);
  expect_equal_runs(root / "whole", root / "killed");
}

}  // namespace
