// hdetach fill as its users meet it, and the documents of this repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/files.h"
#include "tests/filled_runs.h"
#include "tests/usage_errors.h"
#include "train/seal.h"

namespace {

namespace fs = std::filesystem;
using hdetach::program::contains;
using hdetach::program::content;
using hdetach::program::Result;
using hdetach::program::run;

class FillCli : public hdetach::test::FilledRuns {
 protected:
  std::string write_document(const std::string& name, const std::string& text) {
    hdetach::files::write(folder_ / name, text);
    return (folder_ / name).string();
  }
  const std::string settings_ = "<!-- hdetach settings small -->\n<!-- end -->\n";
  const std::string curves_ = "\n<!-- hdetach curves small figures/x.svg -->\n<!-- end -->\n";
};

TEST_F(FillCli, DamagedRunsAreNotPublished) {
  const std::string doc = write_document("doc.md", settings_);
  const fs::path result = folder_ / "small/plain/seed-1/result.json";
  hdetach::files::write(result, hdetach::train::sealed_json(
                                    R"({"status":"finished","epochs":7,"updates":7,"best_epoch":1,)"
                                    R"("best_valid_accuracy":0.5,"seconds":1,"message":""})"));
  const Result missing = run("fill " + doc);  // lines of metrics
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(contains(missing.err, "metrics.jsonl has ")) << missing.err;
  std::string text = content(result);
  text.replace(text.find("0.5"), 3, "0.9");
  hdetach::files::write(result, text);
  const Result changed = run("fill " + doc);
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_TRUE(contains(changed.err, "result.json is damaged")) << changed.err;
  EXPECT_EQ(content(doc), settings_);
}

TEST_F(FillCli, FillsAndThenFindsNothingToDo) {
  const std::string doc = write_document("doc.md", settings_ + curves_);
  const std::string other = write_document("other.md", "text\n");
  const std::string picture = (folder_ / "figures/x.svg").string();

  const Result stale = run("fill --check " + doc + " " + other);
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_EQ(stale.out, doc + ":1: settings small is not what the results say\n" + doc +
                           ":4: curves small figures/x.svg is not what the results say\n" + doc +
                           ":4: " + picture + " is not what the results say\n");
  EXPECT_EQ(stale.err, "hdetach: error: out of date in 3 places; run hdetach fill " + doc + "\n");
  EXPECT_EQ(content(doc), settings_ + curves_);
  EXPECT_FALSE(fs::exists(picture));

  const Result first = run("fill " + doc + " " + other);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out,
            doc + ": 2 of 2 blocks changed, 1 picture drawn\n" + other + ": no blocks\n");
  EXPECT_TRUE(contains(content(doc), "| plain | 82 at best | 2 |")) << content(doc);
  EXPECT_TRUE(contains(content(doc), "](figures/x.svg)\n")) << content(doc);
  EXPECT_TRUE(contains(content(picture), "<svg"));
  EXPECT_EQ(run("fill --check " + doc).exit_code, 0);

  const std::string text = content(doc);
  const auto time = fs::last_write_time(doc);
  const Result second = run("fill " + doc);
  EXPECT_EQ(second.out, doc + ": up to date\n");
  EXPECT_EQ(content(doc), text);
  EXPECT_EQ(fs::last_write_time(doc), time);

  fs::remove(picture);
  const Result lost = run("fill --check " + doc);
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_EQ(lost.out, doc + ":8: " + picture + " is not what the results say\n");
  EXPECT_EQ(run("fill " + doc).out, doc + ": 0 of 2 blocks changed, 1 picture drawn\n");
  EXPECT_TRUE(fs::exists(picture));
}

TEST_F(FillCli, AnErrorInOneFileLeavesAllAsTheyWere) {
  const std::string doc = write_document("doc.md", settings_ + curves_);
  const std::string wrong = write_document("wrong.md", "<!-- hdetach settings nowhere -->\n");
  const Result result = run("fill " + doc + " " + wrong);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "hdetach: error: " + wrong + ":1: the block has no <!-- end -->\n");
  EXPECT_EQ(content(doc), settings_ + curves_);
  EXPECT_FALSE(fs::exists(folder_ / "figures"));
  EXPECT_EQ(run("fill " + (folder_ / "missing.md").string()).exit_code, 1);
}

TEST_F(FillCli, APictureMayBeSharedButNotBeTwo) {
  const std::string doc = write_document("doc.md", curves_ + curves_);
  EXPECT_EQ(run("fill " + doc).exit_code, 0);
  const std::string two = write_document(
      "two.md", curves_ + "<!-- hdetach curves small figures/x.svg plain -->\n<!-- end -->\n");
  const Result result = run("fill " + two);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.err, two + ":4: another block has another picture of the name "))
      << result.err;
}

TEST_F(FillCli, WhatIsWrongWithARunIsSaid) {
  const std::string doc = write_document("doc.md", settings_);
  std::ofstream(folder_ / "small/plain/seed-1/metrics.jsonl", std::ios::app) << "{\"epoch\":";
  const Result result = run("fill " + doc);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "hdetach: notice: ")) << result.err;
  EXPECT_TRUE(contains(result.err, "metrics.jsonl:4: half-written")) << result.err;
}

TEST(FillUsage, IsExplained) {
  hdetach::program::expect_usage_errors(
      {{"fill", "FILE", "required"}, {"fill --chek x.md", "--chek", "--chek"}});
}

// What a document of this repository says of the results is what they say.
TEST(FillRepository, DocumentsAreUpToDate) {
  const std::string source = HDETACH_SOURCE;
  const Result result = run("fill --check " + source + "/docs/results.md " + source + "/README.md");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err << "./run results fills them in";
}

}  // namespace
