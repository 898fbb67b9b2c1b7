// hdetach train and eval as their users meet them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "formats/files.h"
#include "program.h"
#include "run_files.h"

namespace hdetach {
namespace {

using namespace hdetach::program;
using nlohmann::json;
namespace fs = std::filesystem;

class TrainCli : public testing::Test {
 protected:
  std::string out(const std::string& name) const {
    return " --out '" + (root_ / name).string() + "'";
  }

  TemporaryFolder root_;
};

const std::string kSmall =
    "train copy --delay 6 --symbols 2 --hidden 16 --batch 8 --train-size 200 --valid-size 50 "
    "--updates-per-epoch 10 --epochs ";  // and their number
const std::string kMnist = "train mnist --data '" HDETACH_TEST_DATA
                           "/mnist-sample' --train-size 40 --valid-size 20 --hidden 8 --batch 10 "
                           "--epochs 2 --updates-per-epoch 2 ";

TEST_F(TrainCli, HelpListsEverySettingWithItsDefault) {
  const Result copy = run("train copy --help");
  EXPECT_EQ(copy.exit_code, 0);
  for (const char* flag : {"--delay",
                           "--encoding",
                           "--hidden",
                           "--detach",
                           "--path",
                           "--mode",
                           "--anneal-epochs",
                           "--epochs",
                           "--updates-per-epoch",
                           "--batch",
                           "--lr",
                           "--clip",
                           "--train-size",
                           "--valid-size",
                           "--seed",
                           "--layers",
                           "--init",
                           "--stop-at",
                           "--device",
                           "--out",
                           "--resume",
                           "--quiet",
                           "--config",
                           "100000",
                           "5000",
                           "0.001",
                           "scalar",
                           "runs/copy"}) {
    EXPECT_TRUE(contains(copy.out, flag)) << flag;
  }
  const Result mnist = run("train mnist --help");
  for (const char* flag : {"--permute", "--permutation-seed", "--data", "50000", "10000"}) {
    EXPECT_TRUE(contains(mnist.out, flag)) << flag;
  }
  EXPECT_FALSE(contains(mnist.out, "--delay"));
}

TEST_F(TrainCli, BadValuesNameTheFlagTheValueAndTheRule) {
  const struct {
    const char *arguments, *message;
  } cases[] = {
      {"--delay 0", "--delay is 0; it must be a whole number in 1 to 1000000"},
      {"--delay ten", "--delay is ten; it must be a whole number"},
      {"--delay 1.5", "--delay is 1.5; it must be a whole number"},
      {"--delay 99999999999999999999", "--delay is 99999999999999999999"},
      {"--encoding utf8", "--encoding is utf8; it must be one of scalar, onehot"},
      {"--detach 1.1", "--detach is 1.1; it must be in 0 to 1"},
      {"--detach nan", "--detach is nan; it must be in 0 to 1"},
      {"--detach 0.5x", "--detach is 0.5x"},
      {"--clip -1", "--clip is -1; it must be 0 or more"},
      {"--lr 0", "--lr is 0; it must be above 0"},
      {"--device tpu", "--device is tpu; it must be one of cpu"},
      {"--stop-epochs 3", "--stop-epochs is 3 but stop-at is 0"},
      {"--nosuch 1", "--nosuch"},
      {"--threads 0", "--threads"},
  };
  for (const auto& c : cases) {
    const Result result = run("train copy " + std::string(c.arguments) + out("bad"));
    EXPECT_EQ(result.exit_code, 2) << c.arguments << "\n" << result.err;
    EXPECT_TRUE(contains(result.err, c.message)) << c.arguments << ": " << result.err;
    EXPECT_FALSE(fs::exists(root_ / "bad")) << c.arguments;
  }
  const Result bytes = run("train mnist --data \"$(printf 'a\\377')\"" + out("bad"));
  EXPECT_EQ(bytes.exit_code, 2) << bytes.err;
  EXPECT_TRUE(contains(bytes.err, "--data has bytes that are not UTF-8")) << bytes.err;
  const Result nowhere = run("train copy --out ''");
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(contains(nowhere.err, "--out is empty")) << nowhere.err;
  EXPECT_EQ(run("train").exit_code, 2);
  EXPECT_EQ(run("train nosuch").exit_code, 2);
}

TEST_F(TrainCli, ConfigFilesAreReadAndFlagsOverrideThem) {
  files::write(root_ / "a.toml",
               "task = \"copy\"\ndelay = 6\nsymbols = 2\nhidden = 16\nlr = 1\n"
               "batch = 8\ntrain-size = 200\nvalid-size = 50\nepochs = 1\n"
               "updates-per-epoch = 2\n");
  const std::string config = " --config '" + (root_ / "a.toml").string() + "'";
  const Result result = run("train copy --lr 0.01" + config + out("a"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string resolved = files::read(root_ / "a/config.toml");
  EXPECT_TRUE(contains(resolved, "delay = 6\n")) << resolved;
  EXPECT_TRUE(contains(resolved, "lr = 0.01\n")) << resolved;
  EXPECT_TRUE(contains(resolved, "clip = 1.0\n")) << resolved;

  const Result other = run("train mnist" + config + out("b"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "is for task copy")) << other.err;
  files::write(root_ / "a.toml", "task = \"copy\"\n\ndelya = 6\n");
  const Result typo = run("train copy" + config + out("b"));
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_TRUE(contains(typo.err, "a.toml:3: task copy has no setting \"delya\"")) << typo.err;
  files::write(root_ / "a.toml", "task = \"copy\"\ndetach = \"half\"\n");
  const Result type = run("train copy" + config + out("b"));
  EXPECT_EQ(type.exit_code, 2);
  EXPECT_TRUE(contains(type.err, "a.toml:2: detach is \"half\"; it must be in 0 to 1")) << type.err;
  EXPECT_EQ(run("train copy --config /nonexistent.toml" + out("b")).exit_code, 1);
}

TEST_F(TrainCli, QuietPrintsNothing) {
  const Result loud = run(kSmall + "3" + out("a"));
  EXPECT_EQ(loud.exit_code, 0) << loud.err;
  EXPECT_TRUE(contains(loud.out, "best validation accuracy")) << loud.out;
  EXPECT_FALSE(contains(loud.out, "\r")) << "repaints belong on a terminal";
  const Result quiet = run(kSmall + "3 --quiet" + out("b"));
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
  expect_equal_runs(root_ / "a", root_ / "b");
}

TEST_F(TrainCli, AFolderWithARunNeedsResume) {
  ASSERT_EQ(run(kSmall + "3" + out("a")).exit_code, 0);
  const Result again = run(kSmall + "3" + out("a"));
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again.err, "holds a run already; --resume")) << again.err;
  const Result other = run(kSmall + "3 --resume --lr 0.5" + out("a"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(contains(other.err, "lr 0.001 (now 0.5)")) << other.err;
  EXPECT_EQ(run(kSmall + "3 --resume" + out("a")).exit_code, 0);
}

TEST_F(TrainCli, SignalsSaveAndTheRunGoesOnToTheSameBits) {
  const std::string arguments = kSmall + "100 --quiet --resume --threads 1";
  ASSERT_EQ(run(arguments + out("whole")).exit_code, 0);
  for (const int number : {SIGINT, SIGTERM}) {
    const std::string name = std::to_string(number);
    // The shell is replaced, so the signal reaches the program.
    const std::string command = "exec '" HDETACH_PROGRAM "' " + arguments + out(name);
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    while (!fs::exists(root_ / name / "state.safetensors")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(child, number);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(child, number);  // as timeout(1) does, to the process and then to its group
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + number);
    EXPECT_FALSE(fs::exists(root_ / name / "result.json"));
    ASSERT_EQ(run(arguments + out(name)).exit_code, 0);
    expect_equal_runs(root_ / "whole", root_ / name);
  }
}

TEST_F(TrainCli, MnistTrainsOnTheSampleAndEvalAgrees) {
  const Result train = run(kMnist + out("a"));
  ASSERT_EQ(train.exit_code, 0) << train.err;
  const json result = json::parse(files::read(root_ / "a/result.json"));
  const Result eval = run("eval '" + (root_ / "a").string() + "' --json");
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["test_accuracy"], result["test_accuracy"]);
  EXPECT_EQ(json::parse(eval.out)["sequences"], 50);
  const Result wrong = run("eval '" + (root_ / "a").string() + "' --delay 5");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "--delay does not apply")) << wrong.err;
}

TEST_F(TrainCli, MissingMnistFilesAreExplained) {
  const Result result = run("train mnist --data '" + (root_ / "none").string() + "'" + out("a"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "train-images-idx3-ubyte")) << result.err;
  EXPECT_TRUE(contains(result.err, "hdetach data mnist")) << result.err;
  EXPECT_FALSE(fs::exists(root_ / "a/config.toml"));
}

TEST_F(TrainCli, EvalPrintsTable1) {
  ASSERT_EQ(run(kSmall + "3" + out("a")).exit_code, 0);
  const std::string eval = "eval '" + (root_ / "a").string() + "' --sequences 600 --delay ";
  const Result text = run(eval + "6,200");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "64.85")) << text.out;
  EXPECT_TRUE(contains(text.out, "90.72")) << text.out;
  const Result first = run(eval + "6,200 --json --threads 1"), again = run(eval + "6,200 --json");
  EXPECT_EQ(first.out, again.out);
  const json table = json::parse(first.out);
  ASSERT_EQ(table["accuracy"].size(), 2u);
  EXPECT_EQ(table["accuracy"][1]["delay"], 200);
  const double accuracy = table["accuracy"][0]["accuracy"];
  EXPECT_GE(accuracy, 0.0);
  EXPECT_LE(accuracy, 1.0);
  EXPECT_EQ(run(eval + "0").exit_code, 2);
  const Result none = run("eval '" + root_.path().string() + "'");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(contains(none.err, "holds no run")) << none.err;
  fs::remove(root_ / "a/best.safetensors");
  const Result early = run(eval + "6");
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_TRUE(contains(early.err, "none of its epochs is complete")) << early.err;
}

TEST_F(TrainCli, BenchTrainerPrintsTheRatio) {
  const Result result = run("bench --trainer copy100 --detach 0.5 --repeats 1 --threads 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json row = json::parse(result.out);
  EXPECT_GT(row["update_ms"].get<double>(), 0);
  EXPECT_NEAR(row["ratio"].get<double>(),
              row["update_ms"].get<double>() / row["op_ms"].get<double>(), 1e-9);
  EXPECT_EQ(run("bench --trainer wide").exit_code, 2);
  EXPECT_EQ(run("bench --trainer --no-peers").exit_code, 2);
}

}  // namespace
}  // namespace hdetach
