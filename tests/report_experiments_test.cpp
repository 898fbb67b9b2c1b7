// Which runs a report finds, how it groups them, and what it makes of files that are wrong.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/files.h"
#include "report/experiments.h"
#include "report/natural_order.h"
#include "tests/mutate.h"
#include "tests/program.h"
#include "tests/report_runs.h"

namespace {

namespace fs = std::filesystem;
using namespace hdetach::report;
using hdetach::TemporaryFolder;
using hdetach::files::write;
using hdetach::program::contains;
using hdetach::test::metrics_line;
using hdetach::test::write_copy_run;

const char* const kExperimentFile =
    "task = \"copy\"\nthreshold = 0.75\nseeds = [1, 2]\n[base]\nhidden = 64\n"
    "[[setting]]\nname = \"plain\"\npaper = \"82 at best\"\n"
    "[[setting]]\nname = \"detach-0.5\"\ndetach = 0.5\n";

Experiments read_all(const std::vector<fs::path>& folders) {
  return ExperimentReader(folders).read();
}

// "plain: seed-1 seed-2 | detach: seed-1"
std::string outline(const Experiment& experiment) {
  std::string out;
  for (size_t i = 0; i < experiment.shown.size(); ++i) {
    out += (out.empty() ? "" : " | ") + experiment.record.sweep.settings[i].name + ":";
    for (const ShownRun& run : experiment.shown[i])
      out += " " + fs::path(run.name).filename().string();
  }
  return out;
}

std::string joined_notices(const Experiments& experiments) {
  std::string out;
  for (const std::string& notice : experiments.notices.all()) out += notice + "\n";
  return out;
}

TEST(ReportGroups, NaturalOrderCountsAsPeopleDo) {
  std::vector<std::string> names = {"seed-10",  "seed-2",  "detach-0.5", "detach-0.25",
                                    "detach-1", "seed-2b", "",           "seed-02"};
  std::sort(names.begin(), names.end(), natural_less);
  const std::vector<std::string> sorted = {"",        "detach-0.25", "detach-0.5", "detach-1",
                                           "seed-02", "seed-2",      "seed-2b",    "seed-10"};
  EXPECT_EQ(names, sorted);
}

TEST(ReportGroups, ASweepsFolderIsAnExperimentWithSettingsInNaturalOrder) {
  const TemporaryFolder folder;
  for (const char* run :
       {"plain/seed-10", "plain/seed-2", "detach-0.5/seed-1", "detach-0.25/seed-1"}) {
    write_copy_run(folder / ("copy-100/" + std::string(run)));
  }
  const Experiments found = read_all({folder / "copy-100"});
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(found.all[0].name, "copy-100");
  EXPECT_EQ(found.all[0].record.sweep.task, "copy");
  EXPECT_EQ(outline(found.all[0]),
            "detach-0.25: seed-1 | detach-0.5: seed-1 | plain: seed-2 seed-10");
  EXPECT_EQ(found.all[0].shown[2][1].seed, 10);
  EXPECT_EQ(found.all[0].record.runs[2][1].epochs.size(), 2u);
  EXPECT_EQ(joined_notices(found), "");
}

TEST(ReportGroups, FoldersAtAnyDepthAndLoneRuns) {
  const TemporaryFolder folder;
  write_copy_run(folder / "a/x/plain/seed-1");
  write_copy_run(folder / "b/x/plain/seed-1");
  write_copy_run(folder / "lone");
  write_copy_run(folder / "other");
  write_copy_run(folder / "images", {0.5}, "task = \"mnist\"\n");
  write_copy_run(folder / ".hidden");
  write_copy_run(folder / "1/2/3/4/5/6/deep");
  write_copy_run(folder / "1/2/3/4/5/6/7/8/too-deep");
  const Experiments found = read_all({folder.path(), folder / "lone"});
  std::string text;
  for (const Experiment& one : found.all) text += one.name + " = " + outline(one) + "\n";
  const std::string root = folder.path().filename().string(), path = folder.path().string();
  EXPECT_EQ(text, "6 = deep: deep\n" + path + "/a/x = plain: seed-1\n" + path +
                      "/b/x = plain: seed-1\n" + root + " (mnist) = images: images\n" + root +
                      " (copy) = lone: lone | other: other\n");
  EXPECT_TRUE(contains(joined_notices(found), "more than 6 levels down")) << joined_notices(found);
}

TEST(ReportGroups, TheExperimentFileGivesOrderPaperAndWhatWaits) {
  const TemporaryFolder folder;
  const fs::path sweep = folder / "small";
  write_copy_run(sweep / "plain/seed-1");
  write_copy_run(sweep / "detach-0.5/seed-1");
  write_copy_run(sweep / "another/seed-1");
  write(sweep / "small.toml", kExperimentFile);
  write(sweep / "notes.toml", "title = \"not an experiment\"\n");
  const Experiments found = read_all({sweep});
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(outline(found.all[0]),
            "plain: seed-1 seed-2 | detach-0.5: seed-1 seed-2 | another: seed-1");
  EXPECT_EQ(found.all[0].record.sweep.threshold, 0.75);
  EXPECT_EQ(found.all[0].record.sweep.settings[0].paper, "82 at best");
  EXPECT_TRUE(found.all[0].record.runs[0][1].epochs.empty());
  EXPECT_EQ(found.all[0].shown[0][1].folder, (sweep / "plain/seed-2").string());
  EXPECT_EQ(joined_notices(found), "");

  // Of a part of it, only that part.
  const Experiments part = read_all({sweep / "plain"});
  ASSERT_EQ(part.all.size(), 1u);
  EXPECT_EQ(outline(part.all[0]), "plain: seed-1");
  EXPECT_EQ(part.all[0].record.sweep.settings[0].paper, "82 at best");

  write(sweep / "small.toml", "[[setting]]\nname = 1\n");
  const Experiments broken = read_all({sweep});
  EXPECT_EQ(outline(broken.all.at(0)), "another: seed-1 | detach-0.5: seed-1 | plain: seed-1");
  EXPECT_TRUE(contains(joined_notices(broken), "small.toml:1: ")) << joined_notices(broken);
}

TEST(ReportGroups, FilesThatShareTheRunsOfAFolderAddToEachOther) {
  const TemporaryFolder folder;
  const fs::path sweep = folder / "small";
  write_copy_run(sweep / "plain/seed-1");
  write(sweep / "small.toml", kExperimentFile);
  write(sweep / "a-transfer.toml",
        "task = \"copy\"\nfolder = \"small\"\nseeds = [1, 3]\neval-delays = [200]\n"
        "[[setting]]\nname = \"chrono\"\n[[setting]]\nname = \"plain\"\npaper-eval = [64.85]\n");
  EXPECT_EQ(outline(read_all({sweep}).all.at(0)),
            "plain: seed-1 seed-2 seed-3 | detach-0.5: seed-1 seed-2 | chrono: seed-1 seed-3");
  EXPECT_EQ(read_all({sweep}).all[0].record.sweep.settings[0].paper_eval.at(0), 64.85);
  const Experiments other = ExperimentReader({sweep}, "a-transfer").read();
  EXPECT_EQ(other.all.at(0).record.sweep.settings.at(0).name, "chrono");
  EXPECT_EQ(other.all[0].record.sweep.settings[1].paper, "82 at best");
}

TEST(ReportBadInput, NothingToShowIsSaid) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  for (const char* name : {"", "missing", "file"}) {
    const Experiments found = read_all({folder / name});
    EXPECT_TRUE(found.all.empty()) << name;
    EXPECT_EQ(found.notices.all().size(), *name ? 1u : 0u) << name;
  }
  // One that is wrong does not keep the others from being shown.
  write_copy_run(folder / "run");
  const Experiments found = read_all({folder / "missing", folder / "run"});
  EXPECT_EQ(found.all.size(), 1u);
  EXPECT_TRUE(contains(joined_notices(found), "missing: No such file or directory"));
}

TEST(ReportBadInput, LoopsOfLinksEndAndNoRunIsShownTwice) {
  const TemporaryFolder folder;
  write_copy_run(folder / "x/plain/seed-1");
  fs::create_directory_symlink(folder.path(), folder / "x/up");
  fs::create_symlink("itself", folder / "itself");
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_directory_symlink(folder / "x/plain/seed-1", folder / "x/plain/seed-2");
  const Experiments found = read_all({folder.path(), folder / "x", folder / "x/plain/seed-1"});
  ASSERT_EQ(found.all.size(), 1u);
  EXPECT_EQ(outline(found.all[0]), "plain: seed-1");
}

// Each wrong file leaves the run with what is right, and a notice that names it.
TEST(ReportBadInput, AWrongFileBecomesANotice) {
  const std::string good = metrics_line(1, "0.25") + "\n", next = metrics_line(2, "0.5") + "\n";
  const std::string deep(100000, '[');
  const struct {
    const char* what;
    std::string file, content, notice;
    size_t epochs;
  } cases[] = {
      {"cut off", "metrics.jsonl", good + next.substr(0, 40), "metrics.jsonl:2: half-written", 1},
      {"garbage", "metrics.jsonl",
       good +
           "gar\x01"
           "bage\n" +
           next,
       "metrics.jsonl:2: not JSON", 2},
      {"bytes", "metrics.jsonl", good + "\xFF\xFE\n" + next, "metrics.jsonl:2: not JSON", 2},
      {"in a text", "metrics.jsonl", good + "{\"epoch\":\"\xFF\"}\n", ":2: not JSON", 1},
      {"NaN", "metrics.jsonl", good + metrics_line(2, "NaN") + "\n", ":2: not JSON", 1},
      {"infinite", "metrics.jsonl", good + metrics_line(2, "Infinity") + "\n", ":2: not JSON", 1},
      {"too large", "metrics.jsonl", good + metrics_line(2, "1e999") + "\n", ":2: not JSON", 1},
      {"null", "metrics.jsonl", good + metrics_line(2, "null") + "\n", ":2: valid_accuracy", 1},
      {"deep", "metrics.jsonl", good + "{\"samples\":" + deep + "\n", ":2: nested too deeply", 1},
      {"long", "metrics.jsonl", good + "\"" + std::string(2 << 20, 'x') + "\"\n" + next,
       ":2: longer than 1 MiB", 2},
      {"again", "metrics.jsonl", good + next + next, "1 lines write epochs again", 2},
      {"blank", "metrics.jsonl", good + "\n" + next, ":2: not JSON", 2},
      {"newer result", "result.json", "{\"status\":7}", "result.json:1: status is not a text", 2},
      {"no result", "result.json", "", "result.json:1: not JSON", 2},
      {"newer setting", "config.toml", "task = \"copy\"\nfuture = 3\n",
       "config.toml:2: task copy has no setting \"future\"", 2},
      {"newer task", "config.toml", "task = \"speech\"\n", "config.toml:1: task must be", 2},
      {"no TOML", "config.toml", "\x80\x81 = = =\n", "config.toml:1: ", 2},
      {"session", "sessions.jsonl", "[1]\n", "sessions.jsonl:1: not a JSON object", 2},
      {"xray", "xray.jsonl", "{\"epoch\":1}\n{\"epoch\":NaN}\n", "xray.jsonl:2: not JSON", 2},
      {"eval", "eval.json", "{\"accuracy\":[" + deep, "eval.json:1: nested too deeply", 2},
  };
  for (const auto& c : cases) {
    const TemporaryFolder folder;
    write_copy_run(folder / "x/plain/seed-1");
    std::ofstream(folder / ("x/plain/seed-1/" + c.file), std::ios::binary) << c.content;
    const Experiments found = read_all({folder / "x"});
    ASSERT_EQ(found.all.size(), 1u) << c.what;
    EXPECT_EQ(found.all[0].record.runs.at(0).at(0).epochs.size(), c.epochs) << c.what;
    EXPECT_TRUE(contains(joined_notices(found), c.notice))
        << c.what << ": " << joined_notices(found);
    EXPECT_TRUE(contains(joined_notices(found), (folder / "x/plain/seed-1").string())) << c.what;
  }
}

TEST(ReportBadInput, UnknownKeysOfMetricsAreNoProblem) {
  const TemporaryFolder folder;
  write_copy_run(folder / "run");
  std::string line = metrics_line(1, "0.5");
  line.insert(1, "\"future\":{\"a\":[1,2]},");
  write(folder / "run/metrics.jsonl", line + "\n");
  const Experiments found = read_all({folder / "run"});
  EXPECT_EQ(found.all.at(0).record.runs[0][0].epochs.size(), 1u);
  EXPECT_EQ(joined_notices(found), "");
}

TEST(ReportBadInput, WhatIsNoFileIsNotOpened) {
  const TemporaryFolder folder;
  write_copy_run(folder / "run");
  fs::remove(folder / "run/metrics.jsonl");
  ASSERT_EQ(::mkfifo((folder / "run/metrics.jsonl").c_str(), 0600),
            0);  // to read it waits for ever
  fs::create_directory(folder / "run/result.json");
  const Experiments found = read_all({folder / "run"});
  EXPECT_TRUE(contains(joined_notices(found), "metrics.jsonl: not a file"))
      << joined_notices(found);
  EXPECT_TRUE(contains(joined_notices(found), "result.json: not a file")) << joined_notices(found);
}

TEST(ReportBadInput, AFileOrFolderThatMayNotBeReadIsNamed) {
  const TemporaryFolder folder;
  write_copy_run(folder / "x/run");
  write_copy_run(folder / "x/closed/run");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder / "x/run/metrics.jsonl", fs::perms::none);
  fs::permissions(folder / "x/closed", fs::perms::none);
  const uid_t before = ::geteuid();
  constexpr uid_t kNobody = 65534;  // root may read everything
  if (before == 0 && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root that cannot be another";
  const Experiments found = read_all({folder / "x"});
  ASSERT_EQ(::seteuid(before), 0);
  fs::permissions(folder / "x/closed", fs::perms::owner_all);
  const std::string text = joined_notices(found);
  EXPECT_TRUE(contains(text, "metrics.jsonl: cannot open: Permission denied")) << text;
  EXPECT_TRUE(contains(text, "x/closed: Permission denied")) << text;
}

TEST(ReportBadInput, ManyWrongLinesAreAFewNotices) {
  const TemporaryFolder folder;
  write_copy_run(folder / "run");
  std::ofstream(folder / "run/metrics.jsonl") << std::string(1000, '\n');
  const Experiments found = read_all({folder / "run"});
  EXPECT_EQ(found.notices.all().size(), 4u);
  EXPECT_TRUE(contains(joined_notices(found), "997 more lines")) << joined_notices(found);
}

TEST(ReportBadInput, DamagedFilesNeverThrow) {
  const TemporaryFolder folder;
  hdetach::Mutator mutate;
  write_copy_run(folder / "run");
  const std::string metrics = metrics_line(1, "0.5") + "\n" + metrics_line(2, "0.75") + "\n";
  const std::string xray = "{\"epoch\":10,\"orders\":[\"0\"],\"weights\":{\"norm\":1.2}}\n";
  const std::string config = "task = \"copy\"\nhidden = 64\nlr = 0.001\n";
  const std::string result = hdetach::test::result_json("finished", "", 0.5);
  for (int i = 0; i < 100; ++i) {
    std::ofstream(folder / "run/metrics.jsonl") << mutate(metrics);
    std::ofstream(folder / "run/xray.jsonl") << mutate(xray);
    std::ofstream(folder / "run/config.toml") << mutate(config);
    std::ofstream(folder / "run/result.json") << mutate(result);
    EXPECT_NO_THROW(read_all({folder.path()}));
  }
}

TEST(ReportWatch, OnlyWhatChangedIsReadAgain) {
  const TemporaryFolder folder;
  write_copy_run(folder / "x/plain/seed-1");
  write_copy_run(folder / "x/plain/seed-2");
  ExperimentReader reader({folder / "x"});
  const std::string before = reader.stamp();
  const auto first = reader.read();
  EXPECT_EQ(reader.stamp(), before);
  hdetach::files::append_line(folder / "x/plain/seed-2/metrics.jsonl", metrics_line(3, "0.75"));
  EXPECT_NE(reader.stamp(), before);
  const auto second = reader.read();
  EXPECT_EQ(first.all[0].shown[0][0].files, second.all[0].shown[0][0].files);
  EXPECT_NE(first.all[0].shown[0][1].files, second.all[0].shown[0][1].files);
  EXPECT_EQ(second.all[0].record.runs[0][1].epochs.size(), 3u);
  const std::string changed = reader.stamp();
  write(folder / "x/x.toml", kExperimentFile);
  EXPECT_NE(reader.stamp(), changed);
}

}  // namespace
