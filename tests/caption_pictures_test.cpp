// Pictures of attention: what they show, and that any word and name can stand in them.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "report/attention_picture.h"
#include "tests/program.h"
#include "tests/xml.h"

namespace hdetach::report {
namespace {

using program::contains;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

AttentionPicture two_words() {
  return {"7", "", 1, 1, {"a", "dog"}, {{0.1f, 0.2f, 0.3f, 0.4f}, {0, 0, 1, 0}}};
}

TEST(AttentionPicture, HasAPanelForEachWord) {
  const std::string svg = to_svg(two_words());
  EXPECT_EQ(xml_problem(svg), "") << svg;
  EXPECT_EQ(count(svg, "<use href=\"#image\""), 3);  // the image itself comes first
  EXPECT_TRUE(contains(svg, ">a dog</text>")) << svg;
  EXPECT_TRUE(contains(svg, ">a<tspan class=\"peak\" dx=\"6\">40.0%<")) << svg;
  EXPECT_TRUE(contains(svg, ">dog<tspan class=\"peak\" dx=\"6\">100.0%<")) << svg;
}

TEST(AttentionPicture, HeatIsAttentionAsAShareOfTheLargest) {
  const std::string svg = to_svg(two_words());
  // Rows from the top; those at an edge, here all, reach beyond it.
  for (const char* rect : {R"(<rect x="-2" y="-2" width="3" height="3" fill-opacity="0.250"/>)",
                           R"(<rect x="1" y="-2" width="3" height="3" fill-opacity="0.500"/>)",
                           R"(<rect x="-2" y="1" width="3" height="3" fill-opacity="0.750"/>)",
                           R"(<rect x="1" y="1" width="3" height="3" fill-opacity="1.000"/>)"}) {
    EXPECT_EQ(count(svg, rect), 1) << rect;
  }
  EXPECT_EQ(count(svg, "fill-opacity"), 5);  // of the second word one place alone
}

TEST(AttentionPicture, HoldsTheImageOnce) {
  AttentionPicture picture = two_words();
  for (const auto& [bytes, coded] : std::vector<std::pair<std::string, std::string>>{
           {"\xFF\xD8\xFF", "/9j/"}, {"\xFF\xD8", "/9g="}, {"M", "TQ=="}, {"light", "bGlnaHQ="}}) {
    picture.jpeg = bytes;
    EXPECT_EQ(count(to_svg(picture), "href=\"data:image/jpeg;base64," + coded + "\""), 1) << coded;
  }
  picture.width = 640;
  picture.height = 320;
  const std::string svg = to_svg(picture);
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_TRUE(contains(svg, R"(width="224.0" height="112.0")")) << svg;
}

TEST(AttentionPicture, AnyTextCanStandInIt) {
  AttentionPicture picture = two_words();
  picture.words = {"</text><script>alert(1)</script>", "\xC3\xA9t\xC3\xA9&'\""};
  picture.title = "a\x01<b>\"&\xFF.jpg";
  const std::string svg = to_svg(picture);
  EXPECT_EQ(xml_problem(svg), "") << svg;
  EXPECT_FALSE(contains(svg, "<script"));
  EXPECT_TRUE(contains(svg, "\xC3\xA9t\xC3\xA9&amp;&#39;&quot;")) << svg;
  EXPECT_TRUE(contains(svg, "<title>a?&lt;b&gt;&quot;&amp;?.jpg</title>")) << svg;
}

TEST(AttentionPicture, ACaptionWithoutWordsIsTheImage) {
  AttentionPicture picture = two_words();
  picture.words.clear();
  picture.attention.clear();
  const std::string svg = to_svg(picture);
  EXPECT_EQ(xml_problem(svg), "") << svg;
  EXPECT_EQ(count(svg, "<use href=\"#image\""), 1);
}

TEST(AttentionPicture, PositionsMustBeASquare) {
  AttentionPicture picture = two_words();
  picture.attention[1] = {0.5f, 0.5f};
  try {
    to_svg(picture);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "attention to 2 positions cannot be drawn: they are no square");
  }
}

}  // namespace
}  // namespace hdetach::report
