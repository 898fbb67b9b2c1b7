// The tables that hdetach fill puts into documents, as they stand there.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

#include "formats/files.h"
#include "report/documents/markdown.h"
#include "report/documents/wording.h"
#include "tests/error_text.h"
#include "tests/filled_runs.h"

namespace {

using namespace hdetach::report;
using hdetach::program::contains;
using hdetach::test::metrics_line;
using hdetach::test::result_json;
using hdetach::test::write_run;

class FillTables : public hdetach::test::FilledRuns {
 protected:
  void write_evaluation(const std::string& run, const std::string& first,
                        const std::string& second) {
    hdetach::files::write(folder_ / ("small/" + run) / "eval.json",
                          "{\"accuracy\":[{\"delay\":200,\"accuracy\":" + first +
                              "},{\"delay\":1000,\"accuracy\":" + second + "}]}");
  }

  // Captions of one setting with the paper's scores and one without.
  void write_captions() {
    write_experiment("words", R"(task = "caption"
threshold = 0.5
seeds = [1, 2]
[[setting]]
name = "plain"
paper-scores = [71.7, 54.4, 39.7, 28.8, 24.8, 93]
[[setting]]
name = "detach-0.4"
detach = 0.4
)");
    const auto result = [](double cider) {
      hdetach::train::RunResult result;
      result.status = "finished";
      result.measure_is_cider = true;
      result.test_measure = cider;
      result.test_caption_scores = {{"Bleu_1", 0.7}, {"Bleu_2", 0.5},    {"Bleu_3", 0.4},
                                    {"Bleu_4", 0.3}, {"METEOR", 0.2175}, {"ROUGE_L", 0.5},
                                    {"CIDEr", cider}};
      return to_json(result);
    };
    write_run(folder_ / "words/plain/seed-1", {0.4, 0.6}, result(0.8));
    write_run(folder_ / "words/plain/seed-2", {0.4, 0.7}, result(0.9));
    write_run(folder_ / "words/detach-0.4/seed-1", {0.4});
  }
};

TEST_F(FillTables, ASettingIsARow) {
  EXPECT_EQ(
      block("settings small"),
      R"(| setting | paper | seeds | best validation, %: mean (min to max) | median of the last 20 epochs | epochs to 90% | largest gradient norm |
|---|---|---|---|---|---|---|
| plain | 82 at best | 2 | 40.0 (30.0 to 50.0) | 25.0 (20.0 to 30.0) | never | 1.5 |
| detach-0.5 | - | 2 (1 unfinished) | 70.0 (40.0 to 100.0) | 65.0 (40.0 to 90.0) | 1 of 2 seeds, mean 2 | 1.5 |
)");
  EXPECT_EQ(
      block("settings small detach-0.5"),
      R"(| setting | seeds | best validation, %: mean (min to max) | median of the last 20 epochs | epochs to 90% | largest gradient norm |
|---|---|---|---|---|---|
| detach-0.5 | 2 (1 unfinished) | 70.0 (40.0 to 100.0) | 65.0 (40.0 to 90.0) | 1 of 2 seeds, mean 2 | 1.5 |
)");
}

TEST_F(FillTables, UntilAnEpochTheLaterOnesDoNotCount) {
  write_run(folder_ / "small/plain/seed-1", {0.1, 0.2, 0.3}, result_json("finished", "", 0.31));
  EXPECT_EQ(
      block("runs small until=2 plain detach-0.5"),
      R"(| setting | seed | epochs | best validation, % | median of the last 20 epochs | epochs to 90% | largest gradient norm | ended |
|---|---|---|---|---|---|---|---|
| plain | 1 | 2 | 20.0 (epoch 2) | 15.0 | never | 1.5 | finished |
| plain | 2 | 2 | 30.0 (epoch 2) | 25.0 | never | 1.5 | finished |
| detach-0.5 | 1 | 2 | 90.0 (epoch 2) | 70.0 | 2 | 1.5 | finished |
| detach-0.5 | 2 | 1 | 40.0 (epoch 1) | 40.0 | never | 1.5 | unfinished |
)");
  EXPECT_TRUE(contains(block("settings small plain until=2"), "| plain | 82 at best | 2 | 25.0 "));
  EXPECT_TRUE(contains(block("pairs small until=1 plain:detach-0.5"), "+30.0 (+20.0 to +40.0)"));
  hdetach::files::write(folder_ / "small/plain/seed-1/metrics.jsonl",
                        metrics_line(5, "0.5") + "\n");
  EXPECT_EQ(hdetach::test::error_text(folder_.path(), [&] { block("runs small until=4 plain"); }),
            "DIR/doc.md:1: small has a run without an epoch up to 4");
  write_run(folder_ / "small/plain/seed-1", {0.1, 0.2, 0.3}, result_json("finished", "", 0.31));
  // A run that ends before has its test.
  EXPECT_TRUE(contains(block("runs small until=3 plain"), "| 31.0 |"));
}

TEST_F(FillTables, DivergedRunsAndTestsAreColumnsWhereThereAreSome) {
  write_experiment("digits", "task = \"mnist\"\nseeds = [1]\n[[setting]]\nname = \"plain\"\n");
  write_run(folder_ / "digits/plain/seed-1", {0.98765}, result_json("finished", "", 0.985));
  write_run(folder_ / "digits/plain/seed-2", {0.5}, result_json("diverged", "nan"));
  EXPECT_EQ(
      block("settings digits"),
      R"(| setting | seeds | diverged | best validation, %: mean (min to max) | median of the last 20 epochs | epochs to 99% | test, % | largest gradient norm |
|---|---|---|---|---|---|---|---|
| plain | 2 | 1 | 74.38 (50.00 to 98.77) | 74.38 (50.00 to 98.77) | never | 98.50 | 1.5 |
)");
  EXPECT_EQ(
      block("runs digits"),
      R"(| setting | seed | epochs | best validation, % | median of the last 20 epochs | epochs to 99% | test, % | largest gradient norm | ended |
|---|---|---|---|---|---|---|---|---|
| plain | 1 | 1 | 98.77 (epoch 1) | 98.77 | never | 98.50 | 1.5 | finished |
| plain | 2 | 1 | 50.00 (epoch 1) | 50.00 | never | - | 1.5 | diverged |
)");
}

TEST_F(FillTables, ARunIsARow) {
  EXPECT_EQ(
      block("runs small detach-0.5 plain"),
      R"(| setting | seed | epochs | best validation, % | median of the last 20 epochs | epochs to 90% | largest gradient norm | ended |
|---|---|---|---|---|---|---|---|
| detach-0.5 | 1 | 3 | 100.0 (epoch 3) | 90.0 | 2 | 1.5 | finished |
| detach-0.5 | 2 | 1 | 40.0 (epoch 1) | 40.0 | never | 1.5 | unfinished |
| plain | 1 | 3 | 30.0 (epoch 3) | 20.0 | never | 1.5 | finished |
| plain | 2 | 3 | 50.0 (epoch 3) | 30.0 | never | 1.5 | finished |
)");
}

TEST_F(FillTables, SkippedUpdatesAreSummed) {
  std::string metrics;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    std::string line = metrics_line(epoch, "0.5", epoch == 1 ? "5.4e27" : "1");
    const std::string none = "\"skipped\":0";
    metrics += line.replace(line.find(none), none.size(), "\"skipped\":600") + "\n";
  }
  hdetach::files::write(folder_ / "small/plain/seed-1/metrics.jsonl", metrics);
  EXPECT_EQ(
      block("runs small plain"),
      R"(| setting | seed | epochs | best validation, % | median of the last 20 epochs | epochs to 90% | largest gradient norm | skipped updates |
|---|---|---|---|---|---|---|---|
| plain | 1 | 2 | 50.0 (epoch 1) | 50.0 | never | 5e27 | 1,200 |
| plain | 2 | 3 | 50.0 (epoch 3) | 30.0 | never | 1.5 | 0 |
)");
}

TEST_F(FillTables, PairsAreComparedSeedBySeed) {
  EXPECT_EQ(
      block("pairs small plain:detach-0.5"),
      R"(| pair | seeds | better best validation in | difference in points, best validation: mean (min to max) | medians of the last 20 epochs | sooner at 90%, of the seeds where one gets there |
|---|---|---|---|---|---|
| detach-0.5 against plain | 2 (1 unfinished) | 1 of 2 | +30.0 (-10.0 to +70.0) | +40.0 (+10.0 to +70.0) | 1 of 1 |
)");
  // With tests, equal seeds, and a seed that one of them lacks.
  write_run(folder_ / "small/plain/seed-1", {0.9, 1.0}, result_json("finished", "", 0.75));
  write_run(folder_ / "small/detach-0.5/seed-1", {0.9, 1.0}, result_json("finished", "", 0.5));
  std::filesystem::remove_all(folder_ / "small/detach-0.5/seed-2");
  EXPECT_EQ(
      block("pairs small plain:detach-0.5 detach-0.5:plain"),
      R"(| pair | seeds | better best validation in | difference in points, best validation: mean (min to max) | medians of the last 20 epochs | test | sooner at 90%, of the seeds where one gets there |
|---|---|---|---|---|---|---|
| detach-0.5 against plain | 1 | 0 of 1, equal in 1 | 0.0 | 0.0 | -25.0 | 0 of 1, equal in 1 |
| plain against detach-0.5 | 1 | 0 of 1, equal in 1 | 0.0 | 0.0 | +25.0 | 0 of 1, equal in 1 |
)");
}

TEST_F(FillTables, DelaysStandBesideThePapers) {
  write_evaluation("plain/seed-1", "0.5", "0.25");
  write_evaluation("plain/seed-2", "0.75", "0.125");
  write_evaluation("detach-0.5/seed-1", "1", "0.875");
  EXPECT_EQ(block("delays small"), R"(| delay | plain | paper | detach-0.5 |
|---|---|---|---|
| 200 | 62.5 (50.0 to 75.0) | 64.8 | 100.0 |
| 1,000 | 18.8 (12.5 to 25.0) | 48.0 | 87.5 |
)");
}

TEST_F(FillTables, ScoresStandBesideThePapers) {
  write_captions();
  EXPECT_EQ(block("scores words"), R"(| | B-1 | B-2 | B-3 | B-4 | METEOR | ROUGE-L | CIDEr |
|---|---|---|---|---|---|---|---|
| paper, plain | 71.7 | 54.4 | 39.7 | 28.8 | 24.8 | - | 93.0 |
| ours, plain (2 seeds) | 70.0 | 50.0 | 40.0 | 30.0 | 21.8 | 50.0 | 85.0 (80.0, 90.0) |
| ours, detach-0.4 (0 seeds) | - | - | - | - | - | - | - |
)");
  EXPECT_TRUE(contains(block("settings words"), "| best validation CIDEr: mean (min to max) |"));
  EXPECT_TRUE(contains(block("runs words"), "| epochs to 50 | test CIDEr |"));
  EXPECT_TRUE(contains(block("pairs words plain:detach-0.4"), "points of CIDEr"));
}

TEST_F(FillTables, GpuTimeIsThatOfTheExperiments) {
  hdetach::files::write(
      folder_ / "time.jsonl",
      R"({"experiments":["a"],"command":"hdetach sweep a.toml","runs":15,"seconds":1485.4,"commits":["da1bdc9","782b6f1"],"gpu":"NVIDIA H200"}
{"experiments":["a","b","c"],"command":"x | y","runs":4,"seconds":100,"commits":["fddb707"],"gpu":"NVIDIA H200"}
{"experiments":["b"],"command":"z","runs":1,"seconds":9,"commits":["6d6b98f"],"gpu":"NVIDIA H200"})");
  EXPECT_EQ(block("gpu-time time.jsonl a"), R"(| command | runs | GPU seconds | commits |
|---|---|---|---|
| `hdetach sweep a.toml` | 15 | 1,485 | da1bdc9, 782b6f1 |
| `x \| y` (shared with b, c) | 4 | 100 | fddb707 |
| total | | 1,585 | |
)");
  EXPECT_TRUE(contains(block("gpu-time time.jsonl"), "| total | | 1,594 | |"));
  EXPECT_TRUE(contains(block("gpu-time time.jsonl a c"), "(shared with b) |"));
  EXPECT_EQ(block("gpu-minutes time.jsonl"),
            "All runs of the reproduction together took 27 minutes of one NVIDIA H200.\n");
  hdetach::files::write(
      folder_ / "two.jsonl",
      R"({"experiments":["a"],"command":"a","runs":1,"seconds":60,"commits":["1"],"gpu":"GPU 1"}
{"experiments":["a"],"command":"b","runs":1,"seconds":1,"commits":["1"],"gpu":"GPU 2"}
)");
  EXPECT_EQ(block("gpu-minutes two.jsonl"),
            "All runs of the reproduction together took 1 minute of one GPU (GPU 1, GPU 2).\n");
}

TEST(FillText, NumbersAreAsDocumentsWriteThem) {
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(norm_text(0.7123), "0.71");
  EXPECT_EQ(norm_text(56.2), "56");
  EXPECT_EQ(norm_text(613), "613");
  EXPECT_EQ(norm_text(999.7), "1e3");
  EXPECT_EQ(norm_text(5.4e27), "5e27");
  EXPECT_EQ(norm_text(INFINITY), "not finite");
  EXPECT_EQ(norm_text(std::nullopt), "-");
  EXPECT_EQ(signed_points(-0.0004, 1), "0.0");
  EXPECT_EQ(signed_points(-0.0006, 1), "-0.1");
}

TEST(FillText, MarkdownStandsForItself) {
  EXPECT_EQ(markdown_text("a|b_c <x>\n[y]"), "a\\|b\\_c \\<x\\> \\[y\\]");
  EXPECT_EQ(markdown_code("a | `b`"), "`` a \\| `b` ``");
}

}  // namespace
