// hdetach sweep as its users meet it: tiny real runs of the built program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "formats/files.h"
#include "tests/program.h"
#include "tests/tiny_sweep.h"
#include "train/seal.h"

namespace {

namespace fs = std::filesystem;
using hdetach::TemporaryFolder;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::lines;
using hdetach::program::Result;
using hdetach::program::run;
using nlohmann::json;

using Sweep = hdetach::TinySweep;
using hdetach::wait_for;

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

TEST_F(Sweep, MoreThreadsThanCoresAreTold) {
  const std::string command =  // which caps the threads at the cores
      arguments(file("", "epochs = 1")) + " --only seed-1 --quiet --threads 1024";
  const Result asked_for = run(command + " --jobs 2");
  EXPECT_EQ(asked_for.exit_code, 0) << asked_for.err;
  EXPECT_TRUE(contains(asked_for.err, "hdetach: 2 processes of ")) << asked_for.err;
  EXPECT_TRUE(contains(asked_for.err, "fewer --jobs or --threads may be faster")) << asked_for.err;
  fs::remove_all(folder_ / "out");
  const Result by_default = run(command);  // one process with all of the cores
  EXPECT_EQ(by_default.exit_code, 0) << by_default.err;
  EXPECT_FALSE(contains(by_default.err, " processes of ")) << by_default.err;
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
  ASSERT_EQ(run(arguments(file("", "epochs = 1")) + " --quiet --only plain/seed-2").exit_code, 0);
  fs::create_directories(run_folder("plain/seed-1") / "lock");  // where train wants a file
  hdetach::files::write(
      run_folder("plain/seed-2") / "result.json",
      hdetach::train::sealed_json(
          R"({"status":"diverged","epochs":0,"updates":3,"best_epoch":0,"best_valid_accuracy":-1,)"
          R"("seconds":1,"message":"the loss is inf"})"));
  const Result result = run(arguments(file("", "epochs = 1")) + " --quiet");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "2 of 4 runs failed: plain/seed-1, plain/seed-2")) << result.err;
  EXPECT_TRUE(contains(result.err,
                       "plain/seed-1: training ended with exit code 1\n  hdetach: "
                       "error: "))
      << result.err;
  EXPECT_TRUE(contains(result.err, "plain/seed-2: diverged: the loss is inf")) << result.err;
  EXPECT_TRUE(contains(result.out, "detach-0.5  2/2 ")) << result.out;
  EXPECT_EQ(sessions("plain/seed-2"), 1);  // not tried again
}

TEST_F(Sweep, ADamagedRunThatIsOverDoesNotCount) {
  const std::string command = arguments(file("", "epochs = 2")) + " --quiet --only plain/seed-1";
  ASSERT_EQ(run(command).exit_code, 0);
  const fs::path folder = run_folder("plain/seed-1");
  for (const char* name : {"config.toml", "metrics.jsonl", "best.safetensors"}) {
    const std::string bytes = hdetach::files::read(folder / name);
    for (const std::string& damaged : {std::string(), bytes.substr(0, bytes.find('\n') + 1)}) {
      if (damaged.empty()) {
        fs::remove(folder / name);
      } else {
        hdetach::files::write(folder / name, damaged);
      }
      for (const char* dry : {"", " --dry-run"}) {
        const Result result = run(command + dry);
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_TRUE(contains(result.err, "plain/seed-1/" + std::string(name))) << result.err;
      }
    }
    hdetach::files::write(folder / name, bytes);
  }
  EXPECT_EQ(run(command).exit_code, 0);
  EXPECT_EQ(sessions("plain/seed-1"), 1);
}

TEST_F(Sweep, ADamagedRunFailsAloneAndTheOthersGoOn) {
  const std::string command = arguments(file("", "epochs = 1"));
  ASSERT_EQ(run(command + " --quiet --only plain").exit_code, 0);
  const fs::path metrics = run_folder("plain/seed-1") / "metrics.jsonl";
  std::string line = content(metrics);
  hdetach::files::write(metrics, line.replace(line.find("\"update\":3"), 10, "\"update\":4"));

  const Result dry = run(command + " --dry-run");
  EXPECT_EQ(dry.exit_code, 1);
  EXPECT_TRUE(contains(dry.out, "plain/seed-1       damaged ")) << dry.out;
  EXPECT_TRUE(contains(dry.out, "\n4 runs, 2 to do\n")) << dry.out;
  EXPECT_TRUE(contains(dry.err, "metrics.jsonl is damaged")) << dry.err;
  EXPECT_TRUE(contains(dry.err, "1 of 4 runs are damaged")) << dry.err;
  const json listed = json::parse(run(command + " --dry-run --json").out)["runs"];
  EXPECT_TRUE(contains(listed[0]["damaged"], "metrics.jsonl is damaged")) << listed;
  EXPECT_EQ(listed[0]["to_do"], false);
  EXPECT_EQ(listed[1]["damaged"], nullptr);

  const Result result = run(command);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "1 of 4 runs failed: plain/seed-1")) << result.err;
  EXPECT_TRUE(contains(result.err, "metrics.jsonl is damaged")) << result.err;
  EXPECT_TRUE(contains(result.out, "detach-0.5  2/2 ")) << result.out;
  EXPECT_EQ(sessions("plain/seed-1"), 1);
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

TEST_F(Sweep, OnlyWithATextThatNoRunHasIsRefusedAmongOthersThatRunsHave) {
  const Result result = run(arguments(file("", "epochs = 1")) + " --only plain --only detach-0.6");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err,
                       "--only detach-0.6: no run has that in its name; the names are "
                       "like plain/seed-1"))
      << result.err;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

// Two files with the same runs, tried at other delays, and one with runs of its own.
TEST_F(Sweep, SeveralFilesAreSweptTogetherAndARunThatTwoHaveTrainsOnce) {
  const std::string files =
      file("eval-delays = [6]", "epochs = 1") + " " +
      file("folder = \"tiny\"\neval-delays = [8, 6]", "epochs = 1", "longer.toml") + " " +
      file("", "epochs = 2", "other.toml");
  const std::string only = " --only tiny/plain --only other/detach-0.5/seed-2";

  const Result listed = run(arguments(files) + only + " --dry-run --json");
  const json runs = json::parse(listed.out)["runs"];
  ASSERT_EQ(runs.size(), 3u) << listed.out;
  EXPECT_EQ(runs[0]["run"], "tiny/plain/seed-1");
  EXPECT_EQ(runs[1]["run"], "tiny/plain/seed-2");
  EXPECT_EQ(runs[2]["run"], "other/detach-0.5/seed-2");

  const Result result = run(arguments(files) + only);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "tiny/plain/seed-1        finished, 1 epochs")) << result.out;
  EXPECT_TRUE(contains(result.out, "3 of 3 runs over")) << result.out;
  for (const char* name : {"tiny.toml", "longer.toml", "other.toml"}) {
    EXPECT_TRUE(contains(result.out, "\n" + (folder_ / name).string() + "\n\n")) << result.out;
  }
  EXPECT_TRUE(fs::exists(folder_ / "out/tiny/tiny.toml"));
  EXPECT_TRUE(fs::exists(folder_ / "out/tiny/longer.toml"));
  EXPECT_TRUE(fs::exists(folder_ / "out/other/other.toml"));
  EXPECT_EQ(sessions("plain/seed-1"), 1);
  const json eval = json::parse(content(run_folder("plain/seed-1") / "eval.json"));
  ASSERT_EQ(eval["accuracy"].size(), 2u) << eval;
  EXPECT_EQ(eval["accuracy"][0]["delay"], 6);
  EXPECT_EQ(eval["accuracy"][1]["delay"], 8);
  EXPECT_FALSE(fs::exists(folder_ / "out/other/detach-0.5/seed-2/eval.json"));

  const Result again = run(arguments(files) + only + " --json");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  std::istringstream objects(again.out);
  std::vector<json> tables;
  for (std::string line; std::getline(objects, line);) tables.push_back(json::parse(line));
  ASSERT_EQ(tables.size(), 3u) << again.out;
  EXPECT_EQ(tables[0]["file"], (folder_ / "tiny.toml").string());
  EXPECT_EQ(tables[1]["settings"][0]["eval"][0]["delay"], 8);
  EXPECT_EQ(tables[1]["settings"][0]["over"], 2);
  EXPECT_EQ(tables[2]["settings"][1]["over"], 1);
  EXPECT_EQ(sessions("plain/seed-1"), 1);
}

TEST_F(Sweep, AFailedRunIsNamedWithTheFilesThatHaveIt) {
  fs::create_directories(run_folder("plain/seed-1") / "lock");  // where train wants a file
  const std::string files = file("", "epochs = 1") + " " + file("", "epochs = 1", "other.toml");
  const Result result = run(arguments(files) + " --quiet --json --only plain/seed-1");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, "1 of 2 runs failed: tiny/plain/seed-1")) << result.err;
  const size_t second = result.out.find('\n') + 1;
  EXPECT_EQ(json::parse(result.out.substr(0, second))["failed"], json({"plain/seed-1"}));
  EXPECT_EQ(json::parse(result.out.substr(second))["failed"], json::array());
}

TEST_F(Sweep, FilesThatCannotBeSweptTogetherAreRefused) {
  const std::string one = file("", "epochs = 1");
  const std::string same = file("", "epochs = 1", "elsewhere/tiny.toml");
  const std::string other = file("folder = \"tiny\"", "epochs = 1\nlr = 0.5", "other.toml");
  for (const std::string& files : {one + " " + one, one + " " + same}) {
    const Result result = run(arguments(files));
    EXPECT_EQ(result.exit_code, 2) << files;
    EXPECT_TRUE(contains(result.err, "have the same name and the same folder")) << result.err;
  }
  const Result result = run(arguments(one + " " + other));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "FILE " + other + " has the run tiny/plain/seed-1 of " + one +
                                       " with other settings: lr 0.001 (now 0.5)"))
      << result.err;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Sweep, ErrorsOfTheFileAreUsageErrorsWithTheirPlace) {
  const Result bad = run(arguments(file("treshold = 0.5")));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_TRUE(contains(bad.err, "tiny.toml:3: a sweep has no key \"treshold\"")) << bad.err;
  EXPECT_EQ(run(arguments((folder_ / "missing.toml").string())).exit_code, 1);
  EXPECT_EQ(run("sweep").exit_code, 2);
  const std::string file_instead = (folder_ / "tiny.toml").string();
  const Result no_folder = run("sweep " + file("", "epochs = 1") + " --out " + file_instead);
  EXPECT_EQ(no_folder.exit_code, 1);
  EXPECT_TRUE(contains(no_folder.err, "cannot make the folder " + file_instead + "/tiny: "))
      << no_folder.err;
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Sweep, WhatIsNoFileFailsItsRunAlone) {
  const std::string path = file("", "epochs = 1");
  fs::create_directories(run_folder("plain/seed-1"));
  const fs::path pipes[] = {run_folder("plain/seed-1") / "train.log",
                            run_folder("detach-0.5/seed-1.toml")};
  fs::create_directories(pipes[1].parent_path());
  for (const fs::path& pipe : pipes) ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Result result = run(arguments(path) + " --quiet");
  EXPECT_EQ(result.exit_code, 1);
  for (const fs::path& pipe : pipes) {
    EXPECT_TRUE(contains(result.err, pipe.string() + ": not a file")) << result.err;
  }
  EXPECT_TRUE(contains(result.err, "2 of 4 runs failed")) << result.err;
  EXPECT_TRUE(fs::exists(run_folder("plain/seed-2") / "result.json"));
}

// As the runs of a sweep that was killed, which save.
TEST_F(Sweep, RunsThatAreStillInUseAreWaitedFor) {
  fs::create_directories(run_folder("plain/seed-1"));
  const int lock =
      open((run_folder("plain/seed-1") / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const fs::path err = folder_ / "err";
  std::thread release([&] {
    wait_for([&] { return contains(content(err), "is in use by another process"); });
    close(lock);
  });
  const std::string command =
      arguments(file("", "epochs = 1")) + " --only plain/seed-1 --quiet 2>" + err.string();
  const Result result = run(command + " #");
  release.join();
  EXPECT_EQ(result.exit_code, 0) << result.out << content(err);
  EXPECT_TRUE(contains(content(err), "waiting up to")) << content(err);
}

}  // namespace
