// Documents with blocks: where blocks are found, what is replaced, what is refused and in which
// words.
#include <gtest/gtest.h>

#include <string>

#include "formats/files.h"
#include "tests/error_text.h"
#include "tests/filled_runs.h"
#include "tests/mutate.h"

namespace {

using hdetach::program::contains;
using hdetach::test::write_run;

class FillBlocks : public hdetach::test::FilledRuns {
 protected:
  std::string message(const std::string& text) {
    return hdetach::test::error_text(folder_.path(), [&] { fill(text); });
  }
  std::string message_of(const std::string& marker) {
    return message("text\n\n<!-- hdetach " + marker + " -->\n<!-- end -->\n");
  }
};

TEST_F(FillBlocks, OnlyWhatLiesBetweenMarkersIsReplaced) {
  hdetach::files::write(
      folder_ / "time.jsonl",
      R"({"experiments":["a"],"command":"a","runs":1,"seconds":60,"commits":["1"],"gpu":"X"})");
  const std::string marker = "<!-- hdetach gpu-minutes time.jsonl -->";
  const std::string line = "All runs of the reproduction together took 1 minute of one X.";
  const std::string before =
      "# Title\n" + marker + "\nold\n\nold\n<!-- end -->\ntext\n" + marker + "  \n<!-- end -->";
  const std::string after = "# Title\n" + marker + "\n" + line + "\n<!-- end -->\ntext\n" + marker +
                            "  \n" + line + "\n<!-- end -->";
  const auto document = fill(before);
  EXPECT_EQ(document.text, after);
  ASSERT_EQ(document.blocks.size(), 2u);
  EXPECT_EQ(document.blocks[0].line, 2);
  EXPECT_EQ(document.blocks[0].marker, "gpu-minutes time.jsonl");
  EXPECT_TRUE(document.blocks[0].changed && document.blocks[1].changed);
  EXPECT_EQ(document.blocks[1].line, 8);
  const auto again = fill(after);
  EXPECT_EQ(again.text, after);
  EXPECT_FALSE(again.blocks[0].changed || again.blocks[1].changed);

  const std::string returns = marker + "\r\nold\r\n<!-- end -->\r\n";
  EXPECT_EQ(fill(returns).text, marker + "\r\n" + line + "\r\n<!-- end -->\r\n");
  EXPECT_FALSE(fill(fill(returns).text).blocks[0].changed);
}

TEST_F(FillBlocks, CodeAndOtherCommentsAreText) {
  const std::string marker = "<!-- hdetach nothing -->\n";
  const std::string text = "```\n" + marker + "```\n````md\n```\n" + marker + "````\n~~~\n" +
                           marker + "```\n<!-- end -->\n~~~\n    " + marker + "see `" + marker +
                           "<!-- hdetachment -->\n<!-- other -->\n";
  EXPECT_EQ(fill(text).text, text);
  EXPECT_TRUE(fill(text).blocks.empty());
  // Code within a line opens nothing.
  EXPECT_TRUE(contains(message("```x``` y\n" + marker + "<!-- end -->\n"), "DIR/doc.md:2: "));
}

TEST_F(FillBlocks, BrokenMarkersAreNamedWithTheirLine) {
  const std::string good = "<!-- hdetach settings small -->\n";
  EXPECT_EQ(message("a\n" + good + "b\n"), "DIR/doc.md:2: the block has no <!-- end -->");
  EXPECT_EQ(message(good + "\n" + good + "<!-- end -->\n"),
            "DIR/doc.md:3: a block inside the block of line 1, which has no <!-- end --> yet");
  EXPECT_EQ(message("a\n<!-- end -->\n"), "DIR/doc.md:2: <!-- end --> ends no block");
  EXPECT_EQ(message("<!-- hdetach settings\nsmall -->\n"),
            "DIR/doc.md:1: the marker must end with --> on its line");
}

TEST_F(FillBlocks, WhatCannotBeFilledIsNamedWithItsLine) {
  const std::string kinds =
      "there are settings, runs, pairs, delays, scores, curves, delay-curve, gpu-time, gpu-minutes";
  EXPECT_EQ(message_of("tables small"), "DIR/doc.md:3: no kind of block \"tables\"; " + kinds);
  EXPECT_EQ(message("<!-- hdetach -->\n<!-- end -->\n"),
            "DIR/doc.md:1: no kind of block \"\"; " + kinds);
  EXPECT_EQ(message_of("settings"),
            "DIR/doc.md:3: settings has 0 arguments; write settings FOLDER [until=N] SETTING...");
  EXPECT_EQ(message_of("pairs small"),
            "DIR/doc.md:3: pairs has 1 argument; write pairs FOLDER [until=N] A:B...");
  EXPECT_EQ(message_of("curves small"),
            "DIR/doc.md:3: curves has 1 argument; write curves FOLDER PICTURE.svg "
            "SETTING,SETTING...");
  EXPECT_EQ(message_of("gpu-minutes a b"),
            "DIR/doc.md:3: gpu-minutes has 2 arguments; write gpu-minutes FILE");
  for (const std::string wrong : {"until=", "until=0", "until=-1", "until=2.5", "until=1e3"}) {
    EXPECT_EQ(
        message_of("runs small " + wrong),
        "DIR/doc.md:3: \"" + wrong + "\" is no last epoch; write until=N once, with N at least 1");
  }
  EXPECT_TRUE(contains(message_of("runs small until=1 until=2"), "\"until=2\" is no last epoch"));
  EXPECT_EQ(message_of("delays small until=1"),
            "DIR/doc.md:3: DIR/small has no run of a setting \"until=1\"; it has plain, "
            "detach-0.5");
  EXPECT_EQ(message_of("settings small plain other"),
            "DIR/doc.md:3: DIR/small has no run of a setting \"other\"; it has plain, detach-0.5");
  EXPECT_EQ(message_of("runs small later"),
            "DIR/doc.md:3: DIR/small has no run of a setting \"later\"; it has plain, detach-0.5");
  EXPECT_EQ(message_of("settings missing"),
            "DIR/doc.md:3: no run with an epoch in DIR/missing; paths are relative to the Markdown "
            "file. DIR/missing: No such file or directory; it is left out");
  EXPECT_EQ(message_of("pairs small plain"),
            "DIR/doc.md:3: \"plain\" is no pair of settings; write A:B");
  EXPECT_EQ(message_of("pairs small plain:"),
            "DIR/doc.md:3: DIR/small has no run of a setting \"\"; it has plain, detach-0.5");
  EXPECT_EQ(message_of("curves small x.png"),
            "DIR/doc.md:3: the picture x.png must have a name that ends with .svg");
  EXPECT_EQ(message_of("scores small"),
            "DIR/doc.md:3: scores are of captions, not of the task copy");
  std::filesystem::rename(folder_ / "small/plain/seed-1", folder_ / "small/plain/seed-7");
  std::filesystem::remove_all(folder_ / "small/plain/seed-2");
  EXPECT_EQ(message_of("pairs small plain:detach-0.5"),
            "DIR/doc.md:3: plain and detach-0.5 share no seed");
  write_run(folder_ / "other/plain/seed-1", {0.5});
  EXPECT_EQ(message_of("settings ."),
            "DIR/doc.md:3: DIR/ holds several experiments (other, small); name the folder of one");
  EXPECT_EQ(message_of("delays other"),
            "DIR/doc.md:3: no experiment file of this folder has eval-delays");
  EXPECT_EQ(message_of("delay-curve other x.svg"),
            "DIR/doc.md:3: no experiment file of this folder has eval-delays");
}

TEST_F(FillBlocks, WrongGpuTimesAreNamedWithTheirLine) {
  const std::string start = R"({"experiments":["a_b"],"command":"a","commits":["1"],"gpu":"X",)";
  const std::string good = start + R"("runs":1,"seconds":60})" + "\n";
  const struct {
    std::string line, part;
  } cases[] = {
      {"not json", "not JSON"},
      {"", "not JSON"},
      {start + R"("seconds":60})", "runs is missing"},
      {start + R"("runs":0,"seconds":60})", "runs must be at least 1"},
      {start + R"("runs":1,"seconds":0})", "seconds must be above 0"},
      {start + R"("runs":1,"seconds":null})", "seconds must be above 0"},
      {R"({"experiments":[],"command":"a"})", "experiments is empty"},
      {R"({"experiments":["a"],"commits":[1]})", "commits has an entry that is not a text"},
      {R"({"experiments":"a","command":"a"})", "experiments is not a list"},
  };
  for (const auto& c : cases) {
    hdetach::files::write(folder_ / "time.jsonl", good + c.line + "\n");
    EXPECT_EQ(message_of("gpu-time time.jsonl"), "DIR/doc.md:3: DIR/time.jsonl:2: " + c.part);
  }
  hdetach::files::write(folder_ / "time.jsonl", "");
  EXPECT_EQ(message_of("gpu-minutes time.jsonl"), "DIR/doc.md:3: DIR/time.jsonl has no line");
  EXPECT_EQ(message_of("gpu-minutes missing"),
            "DIR/doc.md:3: DIR/missing: cannot open: No such file or directory");
  hdetach::files::write(folder_ / "time.jsonl", good);
  EXPECT_EQ(message_of("gpu-time time.jsonl b"),
            "DIR/doc.md:3: no line is for an experiment \"b\"; there are lines for a_b");
}

TEST_F(FillBlocks, DamagedDocumentsNeverDoMoreThanThrow) {
  hdetach::Mutator mutate;
  const std::string good =
      "a\n```\n```\n<!-- hdetach pairs small plain:detach-0.5 -->\n<!-- end -->\n"
      "<!-- hdetach curves small x.svg plain,detach-0.5 plain -->\r\n<!-- end -->\n";
  for (int i = 0; i < 500; ++i) message(mutate(good));
}

}  // namespace
