// COCO's caption files: what is read of them, and what is said of those that are wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/coco_captions.h"
#include "tests/mutate.h"

namespace {

namespace coco = hdetach::coco;

const char* const kReferences =
    R"({"info": {"annotations": [1, [2], {"image_id": "x"}]}, "images": [{"id": 7, "caption": 5}],
        "annotations": [{"image_id": 7, "id": 1, "caption": "A dog"},
                        {"caption": "The\n\u00e9", "image_id": -8, "more": {"caption": [5]}},
                        {"image_id": 7, "caption": ""}], "annotations_": 5})";
const char* const kCandidates = R"([{"image_id": 7, "caption": "a", "caption": "b"}, )"
                                R"({"image_id": 9223372036854775807, "caption": "c"}])";

struct Wrong {
  std::string text, message;
};

template <class Parse>
std::string message(Parse parse, const std::string& text) {
  try {
    parse(text, "x");
  } catch (const coco::Error& error) {
    return error.what();
  }
  return "no error";
}

template <class Parse>
void expect_messages(Parse parse, const std::vector<Wrong>& cases) {
  for (const Wrong& wrong : cases) {
    EXPECT_EQ(message(parse, wrong.text), wrong.message) << wrong.text.substr(0, 200);
  }
}

TEST(CocoCaptions, ReadsReferencesAmongOtherThings) {
  const std::vector<coco::Caption> captions = coco::parse_references(kReferences, "x");
  ASSERT_EQ(captions.size(), 3u);
  EXPECT_EQ(captions[0].image_id, 7);
  EXPECT_EQ(captions[0].text, "A dog");
  EXPECT_EQ(captions[1].image_id, -8);
  EXPECT_EQ(captions[1].text, "The\n\u00e9");
  EXPECT_EQ(captions[2].text, "");
  EXPECT_TRUE(coco::parse_references(R"({"annotations": []})", "x").empty());
}

TEST(CocoCaptions, ReadsCandidates) {
  const std::vector<coco::Caption> captions = coco::parse_candidates(kCandidates, "x");
  ASSERT_EQ(captions.size(), 2u);
  EXPECT_EQ(captions[0].text, "b");  // of two members of one name the last counts
  EXPECT_EQ(captions[1].image_id, INT64_MAX);
  EXPECT_TRUE(coco::parse_candidates("[]", "x").empty());
}

TEST(CocoCaptions, SaysWhatIsWrongWithCandidates) {
  expect_messages(
      coco::parse_candidates,
      {{"", "x: byte 1: not JSON"},
       {R"([{"image_id": 8, "caption": "two)", "x: byte 33: not JSON"},
       {R"([{"image_id": 8, "caption": "two"}] ])", "x: byte 37: not JSON"},
       {R"([{"image_id": 8, "caption": "two"},])", "x: byte 36: not JSON"},
       {"[{\"image_id\": 8, \"caption\": \"t\xFFo\"}]", "x: byte 31: not UTF-8"},
       {R"({"image_id": 8, "caption": "two"})", "x: not a list"},
       {"5", "x: not a list"},
       {"\"two\"", "x: not a list"},
       {"[5]", "x: entry 0: not an object"},
       {"[[]]", "x: entry 0: not an object"},
       {R"([{"image_id": 1, "caption": "a"}, null])", "x: entry 1: not an object"},
       {"[{}]", "x: entry 0: image_id is missing"},
       {R"([{"image_id": 8}])", "x: entry 0 (image 8): caption is missing"},
       {R"([{"image_id": 1, "caption": "a"}, {"caption": "b"}])",
        "x: entry 1: image_id is missing"},
       {R"([{"image_id": 8, "caption": null}])", "x: entry 0 (image 8): caption is not a text"},
       {R"([{"image_id": 8, "caption": 5}])", "x: entry 0 (image 8): caption is not a text"},
       {R"([{"image_id": 8, "caption": ["a"]}])", "x: entry 0 (image 8): caption is not a text"},
       {R"([{"image_id": {}, "caption": "a"}])", "x: entry 0: image_id is not a whole number"},
       {R"([{"image_id": "8", "caption": "a"}])", "x: entry 0: image_id is not a whole number"},
       {R"([{"image_id": 8.0, "caption": "a"}])", "x: entry 0: image_id is not a whole number"},
       {R"([{"image_id": 9223372036854775808, "caption": "a"}])",
        "x: entry 0: image_id is not a whole number"}});
}

TEST(CocoCaptions, SaysWhatIsWrongWithReferences) {
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  expect_messages(coco::parse_references,
                  {{"{", "x: byte 2: not JSON"},
                   {"[]", "x: not an object"},
                   {"null", "x: not an object"},
                   {"{}", "x: there is no annotations"},
                   {R"({"images": {"annotations": []}})", "x: there is no annotations"},
                   {R"({"annotations": {}})", "x: annotations is not a list"},
                   {R"({"annotations": 5})", "x: annotations is not a list"},
                   {R"({"annotations": [[]]})", "x: annotations entry 0: not an object"},
                   {R"({"annotations": [{"image_id": 7, "id": 5}]})",
                    "x: annotations entry 0 (image 7): caption is missing"},
                   {R"({"annotations": [{"image_id": 7, "caption": {"a": 5}}]})",
                    "x: annotations entry 0 (image 7): caption is not a text"},
                   {R"({"deep": )" + deep + "}", "x: there is no annotations"}});
}

TEST(CocoCaptions, DamagedFilesAreReadOrRefused) {
  for (const bool references : {false, true}) {
    const std::string good = references ? kReferences : kCandidates;
    hdetach::expect_read_or_refused([&](hdetach::Mutator& mutate, int) { return mutate(good); },
                                    [&](const std::string& text) {
                                      return references ? message(coco::parse_references, text)
                                                        : message(coco::parse_candidates, text);
                                    },
                                    "x: ");
  }
}

}  // namespace
