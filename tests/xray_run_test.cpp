// --xray-every: what a run records, that recording changes nothing else, and that going on equals
// never having stopped.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "formats/files.h"
#include "report/run_record.h"
#include "run_files.h"
#include "tiny_run.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/xray_run.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;

class XrayRun : public TinyRun {
 protected:
  XrayRun() : TinyRun(/*epochs=*/5, /*updates_per_epoch=*/4) { config_.xray_every = 2; }

  std::string xrays(const std::string& name) const {
    return files::read(root_ / name / "xray.jsonl");
  }
};

TEST_F(XrayRun, EveryNthEpochIsRecordedWithTheDetachInForce) {
  config_.anneal_epochs = 3;  // epochs 4 and 5 train plain
  run("a");
  const auto records = train::read_xrays(root_ / "a");
  ASSERT_EQ(records.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(records[i].epoch, 2 * (i + 1));
    EXPECT_EQ(records[i].update, 8 * (i + 1));
    EXPECT_EQ(records[i].steps, 10);
    EXPECT_FALSE(records[i].weight_scale.has_value());
    EXPECT_EQ(records[i].detach, i == 0 ? 0.5 : 0.0);
    EXPECT_GT(records[i].weights.cell_share, 0);
    EXPECT_LT(records[i].weights.cell_share, 1);
  }
  EXPECT_NE(records[0].weights.norm, records[1].weights.norm);
}

TEST_F(XrayRun, RecordingDoesNotChangeTheTraining) {
  run("with");
  config_.xray_every = 0;
  run("without");
  expect_equal_training(root_ / "without", root_ / "with");
  EXPECT_FALSE(fs::exists(root_ / "without/xray.jsonl"));
}

TEST_F(XrayRun, StoppedAndResumedItRecordsTheSame) {
  run("whole");
  for (const int64_t update : {3, 8, 9, 16, 18}) {
    const std::string name = "stopped-" + std::to_string(update);
    EXPECT_FALSE(run(name, false, update).has_value());
    EXPECT_TRUE(run(name, true).has_value());
    expect_equal_runs(root_ / "whole", root_ / name);
    EXPECT_EQ(xrays(name), xrays("whole")) << update;
  }
}

TEST_F(XrayRun, RecordsAheadOfTheStateAreMadeAgain) {
  run("whole");
  run("a", false, 9);  // the state is in epoch 3
  const std::string first = xrays("a");
  const std::string whole = xrays("whole");
  EXPECT_EQ(first, whole.substr(0, first.size()));
  // As a process killed before the state of epoch 4 leaves the file, its line complete or not.
  for (const std::string& ahead : {whole.substr(first.size()), std::string(R"({"epoch":4,"upd)")}) {
    files::write(root_ / "a/xray.jsonl", first + ahead);
    run("a", true, 10);
    EXPECT_EQ(xrays("a"), first);
  }
  EXPECT_TRUE(run("a", true).has_value());
  EXPECT_EQ(xrays("a"), whole);
}

TEST_F(XrayRun, RunsOfAGroupRecordAsTheyWouldAlone) {
  config_.hidden = 8;
  train::Config other = config_;
  other.seed = 2;
  other.xray_every = 1;
  {
    train::StopAfter observer(0);
    train::RunFolder a(root_ / "a"), b(root_ / "b");
    const auto outcomes = train::run_group(
        {{config_, &a, {false, "{}"}, &observer}, {other, &b, {false, "{}"}, &observer}},
        &observer.signal);
    for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.result.has_value());
  }
  run("alone-a");
  config_ = other;
  run("alone-b");
  EXPECT_EQ(xrays("a"), xrays("alone-a"));
  EXPECT_EQ(xrays("b"), xrays("alone-b"));
  EXPECT_EQ(train::read_xrays(root_ / "b").size(), 5u);
}

TEST_F(XrayRun, TheXrayOfTheLastWeightsIsTheOneRecordedWithThem) {
  config_.epochs = 4;
  run("a");
  const auto last = report::read_run(root_ / "a").epochs.back();
  const auto records = train::xray_run(config_, root_ / "a", /*best=*/false, &last, {});
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(to_json(records[0]), to_json(train::read_xrays(root_ / "a").back()));
  train::XrayOptions options;
  options.lags = {10};
  EXPECT_THROW(train::xray_run(config_, root_ / "a", true, &last, options), train::LagError);
}

TEST_F(XrayRun, ShowAndTellRecordsAndSoftAttentionIsRefused) {
  config_ = train::default_config("caption");
  config_.data = "generated";
  config_.wordnet = (root_ / "none").string();
  config_.train_size = 30;
  config_.valid_size = 10;
  config_.hidden = config_.embedding = 8;
  config_.epochs = config_.xray_every = 2;
  run("whole");
  run("a", false, 4);
  EXPECT_TRUE(run("a", true).has_value());
  EXPECT_EQ(xrays("a"), xrays("whole"));
  const auto records = train::read_xrays(root_ / "a");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_GT(records[0].weights.norm, 0);
  const auto last = report::read_run(root_ / "a").epochs.back();
  EXPECT_EQ(to_json(train::xray_run(config_, root_ / "a", false, &last, {})[0]) + "\n", xrays("a"));

  config_.model = "soft-attention";
  EXPECT_THROW(train::check(config_), train::ConfigError);
  EXPECT_THROW(train::xray_run(config_, root_ / "a", true, &last, {}), train::ConfigError);
}

}  // namespace
}  // namespace hdetach
