// Run folders in, figures, tables and curves out.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "formats/files.h"
#include "report/run_record.h"
#include "report/summary.h"
#include "report/sweep_record.h"
#include "report/terminal_plot.h"
#include "tests/mutate.h"
#include "tests/program.h"
#include "tests/report_runs.h"

namespace {

namespace fs = std::filesystem;
using namespace hdetach::report;
using hdetach::TemporaryFolder;
using hdetach::program::contains;
using hdetach::program::lines;
using hdetach::test::metrics_line;
using hdetach::test::result_json;
using hdetach::test::write_run;

std::string message(const fs::path& folder) {
  try {
    read_run(folder);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunRecord, AnEmptyOrMissingFolderIsANewRun) {
  const TemporaryFolder folder;
  for (const fs::path& path : {folder.path(), folder / "missing"}) {
    const RunRecord run = read_run(path);
    EXPECT_FALSE(run.config || run.result);
    EXPECT_TRUE(run.epochs.empty() && run.evaluations.empty());
    EXPECT_EQ(best_epoch(run), nullptr);
    EXPECT_EQ(first_epoch_at(run, 0), nullptr);
    EXPECT_FALSE(late_accuracy(run) || largest_grad_norm(run));
    EXPECT_EQ(seconds(run), 0);
  }
}

TEST(RunRecord, ReadsWhatThereIs) {
  const TemporaryFolder folder;
  write_run(folder.path(), {0.25, 0.5, 0.5, 0.125}, result_json("stopped-early", "enough", 0.75));
  hdetach::files::write(folder / "config.toml", "task = \"copy\"\ndelay = 7\n");
  hdetach::files::write(folder / "eval.json",
                        "{\"accuracy\":[{\"delay\":200,\"accuracy\":0.5,\"loss\":1}]}");
  const RunRecord run = read_run(folder.path());
  EXPECT_EQ(run.config->delay, 7);
  ASSERT_EQ(run.epochs.size(), 4u);
  EXPECT_EQ(run.epochs[1].epoch, 2);
  EXPECT_EQ(run.epochs[1].update, 200);
  EXPECT_EQ(run.epochs[1].train_loss, 0.5);
  EXPECT_EQ(run.epochs[1].valid_loss, 0.25);
  EXPECT_EQ(run.result->status, "stopped-early");
  EXPECT_EQ(run.result->message, "enough");
  EXPECT_EQ(run.result->test_measure, 0.75);
  EXPECT_FALSE(diverged(run));
  EXPECT_EQ(accuracy_at(run, 200), 0.5);
  EXPECT_FALSE(accuracy_at(run, 201));
  EXPECT_EQ(best_epoch(run)->epoch, 2);  // the earliest of equals
  EXPECT_EQ(first_epoch_at(run, 0.5)->epoch, 2);
  EXPECT_EQ(first_epoch_at(run, 0.51), nullptr);
  EXPECT_EQ(late_accuracy(run), 0.375);
  EXPECT_EQ(largest_grad_norm(run), 1.5);
  EXPECT_EQ(seconds(run), 8);
}

TEST(RunRecord, LateAccuracyIsOfTheLastTwentyEpochs) {
  const TemporaryFolder folder;
  std::vector<double> accuracies(30, 0.0);
  for (size_t i = 10; i < 30; ++i) accuracies[i] = i < 20 ? 0.5 : 1;  // ten of each
  write_run(folder.path(), accuracies);
  EXPECT_EQ(late_accuracy(read_run(folder.path())), 0.75);
}

TEST(RunRecord, ToleratesWhatAKilledRunLeaves) {
  const TemporaryFolder folder;
  hdetach::files::write(folder / "metrics.jsonl", metrics_line(1, "0.5") + "\n" +
                                                      metrics_line(2, "0.6", "null") + "\n" +
                                                      metrics_line(2, "0.7", "null") + "\n" +
                                                      metrics_line(3, "0.8").substr(0, 30));
  const RunRecord run = read_run(folder.path());
  ASSERT_EQ(run.epochs.size(), 2u);
  EXPECT_EQ(run.epochs[1].valid_measure, 0.7);  // the epoch that was done again counts
  EXPECT_TRUE(std::isinf(*largest_grad_norm(run)));
}

TEST(RunRecord, GarbageIsNamedWithItsPlace) {
  const TemporaryFolder folder;
  const fs::path metrics = folder / "metrics.jsonl";
  const std::string good = metrics_line(1, "0.5") + "\n";
  const struct {
    std::string line, part;
  } cases[] = {{"not json", "not JSON"},
               {"[1]", "not a JSON object"},
               {"{\"epoch\":1}", "update is missing"},
               {metrics_line(2, "\"x\""), "valid_accuracy is not a number"},
               {metrics_line(2, "null"), "valid_accuracy is not a number"},
               {metrics_line(0, "0.5"), "epochs count from 1"},
               {"{\"epoch\":1.5}", "epoch is not a whole number"}};
  for (const auto& c : cases) {
    hdetach::files::write(metrics, good + c.line + "\n");
    const std::string said = message(folder.path());
    EXPECT_EQ(said.rfind(metrics.string() + ":2: ", 0), 0u) << said;
    EXPECT_TRUE(contains(said, c.part)) << said;
  }
  hdetach::files::write(metrics, good);
  hdetach::files::write(folder / "result.json", "{\"status\":1}");
  EXPECT_TRUE(contains(message(folder.path()), "result.json:1: status is not a text"));
}

TEST(RunRecord, DamagedFilesNeverDoMoreThanThrow) {
  const TemporaryFolder folder;
  hdetach::Mutator mutate;
  const std::string good = metrics_line(1, "0.5") + "\n" + metrics_line(2, "0.75") + "\n";
  for (int i = 0; i < 500; ++i) {
    std::ofstream(folder / "metrics.jsonl") << mutate(good);
    message(folder.path());
    Notices notices;
    EXPECT_NO_THROW(read_run(folder.path(), &notices));
  }
}

// Two settings with two seeds; the second has one run that is over and one that is not.
class SweepReport : public testing::Test {
 protected:
  void SetUp() override {
    sweep_.task = "copy";
    sweep_.folder = "small";
    sweep_.threshold = 0.9;
    sweep_.seeds = {1, 2};
    for (const char* name : {"plain", "detach-0.5"}) {
      hdetach::train::SweepSetting setting;
      setting.name = name;
      sweep_.settings.push_back(setting);
    }
    sweep_.settings[1].config.detach = 0.5;
    sweep_.settings[0].paper = "82 at best";
    const std::string finished = result_json("finished", "");
    write_run(folder_ / "plain/seed-1", {0.1, 0.2, 0.3}, finished);
    write_run(folder_ / "plain/seed-2", {0.2, 0.3, 0.5}, finished);
    write_run(folder_ / "detach-0.5/seed-1", {0.5, 0.9, 1.0}, finished);
    write_run(folder_ / "detach-0.5/seed-2", {0.4});
  }

  SweepRecord record() const { return read_sweep(sweep_, folder_.path()); }

  TemporaryFolder folder_;
  hdetach::train::Sweep sweep_;
};

TEST_F(SweepReport, FiguresOfASettingAreOverItsSeeds) {
  const SettingFigures plain = figures(record(), 0), detach = figures(record(), 1);
  EXPECT_EQ(plain.runs, 2);
  EXPECT_EQ(plain.over, 2);
  EXPECT_EQ(plain.diverged, 0);
  EXPECT_NEAR(plain.best->mean, 0.4, 1e-12);
  EXPECT_EQ(plain.best->low, 0.3);
  EXPECT_EQ(plain.best->high, 0.5);
  EXPECT_NEAR(plain.late->mean, 0.25, 1e-12);
  EXPECT_FALSE(plain.epochs_to_threshold || plain.test);
  EXPECT_EQ(plain.seconds, 12);
  EXPECT_EQ(detach.over, 1);
  EXPECT_EQ(detach.epochs_to_threshold->count, 1);
  EXPECT_EQ(detach.epochs_to_threshold->mean, 2);
}

TEST_F(SweepReport, TheTableHasEverySettingAndThePapersText) {
  const std::string text = summary_text(record());
  EXPECT_TRUE(contains(text, "plain       2/2   40.0 (30.0-50.0)")) << text;
  EXPECT_TRUE(contains(text, "  paper: 82 at best\n")) << text;
  EXPECT_TRUE(contains(text, "detach-0.5  1/2   70.0 (40.0-100.0)")) << text;
  EXPECT_TRUE(contains(text, "2 (1/2)")) << text;
  EXPECT_TRUE(contains(text, "to 90%")) << text;
  EXPECT_FALSE(contains(text, "test")) << text;

  const SummaryTable cells = summary_table(record());
  const std::vector<std::string> columns = {
      "setting",        "paper",         "runs over",        "best validation % (min-max)",
      "last 20 epochs", "epochs to 90%", "largest gradient", "training time"};
  EXPECT_EQ(cells.columns, columns);
  const std::vector<std::string> plain = {"plain", "82 at best", "2/2", "40.0 (30.0-50.0)",
                                          "25.0",  "- (0/2)",    "1.5", "12 s"};
  EXPECT_EQ(cells.rows.at(0), plain);
  EXPECT_EQ(cells.rows.at(1).at(1), "-");

  const nlohmann::json json = nlohmann::json::parse(summary_json(record()).dump());
  EXPECT_EQ(json["settings"].size(), 2u);
  EXPECT_NEAR(json["settings"][0]["best_valid_accuracy"]["mean"], 0.4, 1e-12);
  EXPECT_EQ(json["settings"][0]["paper"], "82 at best");
  EXPECT_EQ(json["settings"][0]["epochs_to_threshold"], nullptr);
  EXPECT_EQ(json["settings"][1]["epochs_to_threshold"]["runs"], 1);
  EXPECT_EQ(json["settings"][1]["seeds"][0]["status"], "finished");
  EXPECT_EQ(json["settings"][1]["seeds"][1]["status"], nullptr);
}

TEST_F(SweepReport, TestAccuracyAndDivergedRunsShowWhereThereAreSome) {
  write_run(folder_ / "plain/seed-1", {0.1}, result_json("finished", "", 0.985));
  write_run(folder_ / "plain/seed-2", {0.1}, result_json("diverged", "inf"));
  const std::string text = summary_text(record());
  EXPECT_TRUE(contains(text, "test")) << text;
  EXPECT_TRUE(contains(text, "98.5")) << text;
  EXPECT_TRUE(contains(text, "diverged: 1 of its runs")) << text;
  const SummaryTable cells = summary_table(record());
  EXPECT_EQ(cells.columns.at(3), "runs diverged");
  EXPECT_EQ(cells.rows.at(0).at(3), "1");
  EXPECT_EQ(cells.rows.at(1).at(3), "0");
}

TEST_F(SweepReport, EvaluationsStandBesideThePapers) {
  sweep_.eval_delays = {200, 400};
  sweep_.settings[0].paper_eval = {64.85, 48.17};
  for (const char* seed : {"1", "2"}) {
    hdetach::files::write(
        folder_ / (std::string("plain/seed-") + seed + "/eval.json"),
        std::string("{\"accuracy\":[{\"delay\":200,\"accuracy\":0.") + seed + "}]}");
  }
  const std::string text = summary_text(record());
  EXPECT_TRUE(contains(text, "200    15.0 (10.0-20.0)  64.8")) << text;
  EXPECT_TRUE(contains(text, "400    -                 48.2")) << text;
  const SummaryTable cells = summary_table(record());
  EXPECT_EQ(cells.columns.at(cells.columns.size() - 4), "delay 200, %");
  EXPECT_EQ(cells.rows.at(0).at(cells.columns.size() - 4), "15.0 (10.0-20.0)");
  EXPECT_EQ(cells.columns.back(), "delay 400, paper");
  EXPECT_EQ(cells.rows.at(0).back(), "48.2");
  EXPECT_EQ(cells.rows.at(1).back(), "-");
  const nlohmann::json json = nlohmann::json::parse(summary_json(record()).dump());
  EXPECT_EQ(json["settings"][0]["eval"][0]["paper_percent"], 64.85);
  EXPECT_NEAR(json["settings"][0]["eval"][0]["accuracy"]["mean"], 0.15, 1e-12);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

TEST_F(SweepReport, ThePlotPutsEveryPointWhereItBelongs) {
  const std::string text = terminal_plot(record(), 80, false);
  const std::vector<std::string> rows = split(text);
  for (const std::string& row : rows) EXPECT_LE(row.size(), 80u) << row;
  ASSERT_EQ(rows.size(), 16u) << text;
  // Epochs 0 to 3 over 72 columns behind 7 of labels; 13 rows from 100% down to 0%.
  const int first = 7 + 24, second = 7 + 47, third = 7 + 71;
  EXPECT_EQ(rows[0].substr(0, 7), " 100% |");
  EXPECT_EQ(rows[0].at(third), '#');
  EXPECT_EQ(rows[1].at(second), '#');  // 90%
  EXPECT_EQ(rows[6].substr(0, 7), "  50% |");
  EXPECT_EQ(rows[6].at(first), '#');
  EXPECT_EQ(rows[6].at(third), 'o');
  EXPECT_EQ(rows[12].substr(0, 7), "   0% |");
  EXPECT_EQ(rows[14].at(7), '0');
  EXPECT_EQ(rows[14].at(first), '1');
  EXPECT_EQ(rows[14].at(third), '3');
  EXPECT_TRUE(contains(rows[15], "o plain   # detach-0.5")) << text;
}

TEST_F(SweepReport, ThePlotMarksSharedCellsAndColours) {
  write_run(folder_ / "plain/seed-1", {0.5});
  EXPECT_TRUE(contains(terminal_plot(record(), 80, false), "@")) << "two settings at 50%";
  const std::string colour = terminal_plot(record(), 80, true);
  EXPECT_TRUE(contains(colour, "\033[33mo\033[0m")) << colour;
  fs::remove_all(folder_.path());
  EXPECT_EQ(terminal_plot(record(), 80, false), "");
}

TEST_F(SweepReport, CaptionsAreMeasuredByCider) {
  sweep_.task = "caption";
  write_run(folder_ / "plain/seed-1", {0.3, 1.3});
  const std::vector<std::string> rows = split(terminal_plot(record(), 80, false));
  EXPECT_EQ(rows[0].substr(0, 7), "  160 |");
  EXPECT_EQ(rows[6].substr(0, 7), "   80 |");
}

TEST_F(SweepReport, ThePlotNamesWhatItLeavesOut) {
  for (int i = 0; i < 9; ++i) {
    hdetach::train::SweepSetting setting;
    setting.name = "a-setting-with-a-long-name-" + std::to_string(i);
    sweep_.settings.push_back(setting);
  }
  const std::string text = terminal_plot(record(), 80, false);
  for (const std::string& row : split(text)) EXPECT_LE(row.size(), 80u) << row;
  EXPECT_TRUE(contains(text, "the first 8 of 11 settings")) << text;
}

TEST(ReportText, NumbersAreShort) {
  EXPECT_EQ(duration(0.4), "0 s");
  EXPECT_EQ(duration(35), "35 s");
  EXPECT_EQ(duration(250), "4 min 10 s");
  EXPECT_EQ(duration(8000), "2 h 13 min");
  EXPECT_EQ(duration(86400 * 3 + 4 * 3600), "3 d 4 h");
  EXPECT_EQ(duration(-1), "0 s");
  EXPECT_EQ(percent(0.98461), "98.5");
  EXPECT_EQ(short_number(0.7123), "0.71");
  EXPECT_EQ(short_number(492.3), "492");
  EXPECT_EQ(short_number(3.21e19), "3.2e+19");
  EXPECT_EQ(short_number(INFINITY), "inf");
}

}  // namespace
