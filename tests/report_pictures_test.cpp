// The pictures of hdetach fill: curves by epoch, accuracy by delay.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/files.h"
#include "report/documents/chart.h"
#include "tests/filled_runs.h"
#include "tests/xml.h"

namespace {

using namespace hdetach::report;
using hdetach::xml_problem;
using hdetach::program::contains;
using hdetach::test::write_run;

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

class FillPictures : public hdetach::test::FilledRuns {};

TEST_F(FillPictures, EveryRunIsALineAndEverySettingAThickOne) {
  const std::string svg = picture("curves small curves.svg");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, "<path class=\"run\""), 4);
  EXPECT_EQ(count_of(svg, "<path class=\"mean\""), 2);
  for (const char* text :
       {">plain (2 seeds)<", ">detach-0.5 (2 seeds)<", ">epoch<", ">validation accuracy, %<",
        ">chance<", ">100<", "<rect width=\"900\" height=\"382\" fill=\"#fff\"/>"}) {
    EXPECT_TRUE(contains(svg, text)) << text << "\n" << svg;
  }
  EXPECT_FALSE(contains(svg, "later"));
  // Three epochs over 836 pixels behind 50; 300 pixels for 0 to 100%, from 34 down.
  EXPECT_TRUE(contains(svg, "d=\"m328.7 304 278.6 -30 278.7 -30\"")) << svg;
  // The mean goes as far as both runs do, and is not drawn beyond.
  EXPECT_TRUE(contains(svg, "<path class=\"mean\" d=\"m328.7 199\"")) << svg;
  EXPECT_EQ(
      block("curves small sub/curves.svg"),
      "![small: validation accuracy by epoch, runs thin and the mean of a setting thick. Means of "
      "the best epochs: plain (2 seeds), 40.0; detach-0.5 (2 seeds), 70.0](sub/curves.svg)\n");
}

TEST_F(FillPictures, PanelsShareTheirAxes) {
  const std::string svg =
      picture("curves small curves.svg plain,detach-0.5 plain detach-0.5 plain");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, ">epoch<"), 4);
  EXPECT_EQ(count_of(svg, ">validation accuracy, %<"), 2);  // two rows of two
  EXPECT_EQ(count_of(svg, "<path class=\"run\""), 10);
  EXPECT_EQ(count_of(svg, ">3<"), 4);  // the last epoch
}

TEST_F(FillPictures, ASettingAloneInItsPanelHasAColourOfItsOwn) {
  const std::string blue = "stroke=\"#0072b2\"", red = "stroke=\"#d55e00\"";
  const std::string alone = picture("curves small x.svg plain detach-0.5");
  EXPECT_EQ(count_of(alone, blue), 2 + 1 + 1);  // runs, mean, sample
  EXPECT_EQ(count_of(alone, red), 2 + 1 + 1);
  const std::string pairs = picture("curves small x.svg plain,detach-0.5 detach-0.5,plain");
  EXPECT_EQ(count_of(pairs, blue), 2 * (2 + 1 + 1));
  EXPECT_EQ(count_of(pairs, red), 2 * (2 + 1 + 1));
}

TEST_F(FillPictures, NamesAreEscaped) {
  write_run(folder_ / "odd/a<b&\"c/seed-1", {0.5, 0.75});
  const std::string svg = picture("curves odd curves.svg");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_TRUE(contains(svg, ">a&lt;b&amp;&quot;c (1 seed)<")) << svg;
  EXPECT_TRUE(contains(block("curves odd curves.svg"), "a\\<b&\"c (1 seed), 75.0"));
}

TEST_F(FillPictures, LongRunsStaySmallAndKeepTheirDips) {
  for (int seed = 1; seed <= 15; ++seed) {
    std::vector<double> accuracies;
    for (int epoch = 0; epoch < 600; ++epoch) {
      accuracies.push_back(0.5 + 0.001 * ((epoch * 7919 + seed * 104729) % 400));
    }
    accuracies[333] = 0;
    write_run(folder_ / ("long/plain/seed-" + std::to_string(seed)), accuracies);
  }
  for (const char* panels : {"", " plain plain plain"}) {
    const std::string svg = picture(std::string("curves long curves.svg") + panels);
    EXPECT_LT(svg.size(), (*panels == '\0' ? 1u : 3u) * 150'000u);
  }
}

TEST(FillChart, OfAColumnOfPixelsTheLowestAndTheHighestRemain) {
  const std::vector<ChartPoint> points = {{0.1, 5}, {0.3, 9}, {0.5, 6}, {0.9, 2},
                                          {1.2, 3}, {2.5, 4}, {2.6, 4}};
  std::vector<double> kept;
  for (const ChartPoint& point : thinned(points)) kept.push_back(point.x);
  EXPECT_EQ(kept, (std::vector<double>{0.3, 0.9, 1.2, 2.5, 2.6}));
}

TEST(FillChart, StepsAreFromRoundedPlaces) {
  EXPECT_EQ(path_data({{1.04, 2}, {1.08, 1.96}, {1.12, 0.5}}), "m1 2 0.1 0 0 -1.5");
  EXPECT_EQ(path_data({}), "");
}

TEST_F(FillPictures, DelaysHaveOursAndThePapers) {
  for (const char* seed : {"1", "2"}) {
    hdetach::files::write(
        folder_ / (std::string("small/plain/seed-") + seed + "/eval.json"),
        std::string("{\"accuracy\":[{\"delay\":200,\"accuracy\":0.") + seed + "}]}");
  }
  const std::string svg = picture("delay-curve small delays.svg");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_EQ(count_of(svg, "class=\"whisker\""), 1);
  EXPECT_EQ(count_of(svg, "class=\"ours\""), 2 + 1);  // two samples of the legend, one mean
  EXPECT_EQ(count_of(svg, "class=\"paper\""), 1 + 2);
  for (const char* text : {">plain (2 seeds)<", ">paper, plain<", ">detach-0.5 (0 seeds)<", ">200<",
                           ">1,000<", ">delay<", ">accuracy, %<"}) {
    EXPECT_TRUE(contains(svg, text)) << text << "\n" << svg;
  }
  EXPECT_EQ(block("delay-curve small delays.svg plain"),
            "![small: accuracy in percent by delay, lowest to highest as whiskers. plain (2 "
            "seeds), 15.0 (10.0 to 20.0) at delay 200 and - at 1,000](delays.svg)\n");
}

}  // namespace
