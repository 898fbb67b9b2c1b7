// Karpathy's JSON: what is read, what is passed over, and what is refused.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/karpathy_json.h"
#include "tests/mutate.h"

namespace {

namespace karpathy = hdetach::karpathy;

std::vector<karpathy::Image> read(const std::string& bytes) {
  std::vector<karpathy::Image> images;
  karpathy::read(bytes, "x", [&](karpathy::Image image) { images.push_back(std::move(image)); });
  return images;
}

std::string karpathy_message(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const karpathy::Error& error) {
    return error.what();
  }
  return "no error";
}

// As dataset_coco.json has them.
const std::string kCoco =
    R"({"images": [{"filepath": "val2014", "sentids": [770337, 771687],
"filename": "COCO_val2014_000000391895.jpg", "imgid": 0, "split": "test", "sentences": [
{"tokens": ["a", "man", "on", "a", "bike"], "raw": "A man on a bike.", "imgid": 0, "sentid": 770337},
{"raw": "caf\u00e9 \ud83d\ude00", "imgid": 0, "sentid": 1}], "cocoid": 391895}], "dataset": "coco"})";

std::string with_image(const std::string& fields) { return "{\"images\":[{" + fields + "}]}"; }
const std::string kSentences = "\"sentences\":[{\"raw\":\"A dog.\"}]";

TEST(Karpathy, ReadsWhatTheFilesHave) {
  const auto images = read(kCoco);
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].id, 391895);
  EXPECT_EQ(images[0].split, "test");
  EXPECT_EQ(images[0].folder, "val2014");
  EXPECT_EQ(images[0].file, "COCO_val2014_000000391895.jpg");
  EXPECT_EQ(images[0].captions,
            (std::vector<std::string>{"A man on a bike.", "caf\u00E9 \U0001F600"}));
  EXPECT_EQ(images[0].words, (std::vector<std::string>{"a man on a bike", ""}));
}

TEST(Karpathy, TheCocoIdComesBeforeTheOthersInAnyOrder) {
  const std::string rest = ",\"split\":\"train\"," + kSentences;
  EXPECT_EQ(read(with_image("\"imgid\":3" + rest))[0].id, 3);
  EXPECT_EQ(read(with_image("\"imgid\":3,\"id\":4" + rest))[0].id, 4);
  EXPECT_EQ(read(with_image("\"cocoid\":5,\"imgid\":3,\"id\":4" + rest))[0].id, 5);
  EXPECT_EQ(read(with_image("\"id\":4,\"imgid\":3,\"cocoid\":5" + rest))[0].id, 5);
}

TEST(Karpathy, PassesOverWhatItDoesNotKnow) {
  const std::string other = R"("a":[1,{"images":[{"raw":null}]},[[]]],"b":-1.5,"c":{"split":[]},)";
  const auto images = read("{" + other + "\"images\":[{" + other + "\"id\":1,\"split\":\"val\"," +
                           "\"sentences\":[{" + other + "\"raw\":\"x\"}]}]," + "\"z\":true}");
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images[0].captions, std::vector<std::string>{"x"});
  EXPECT_TRUE(read("{\"images\":[]}").empty());
}

TEST(Karpathy, ATokenWithBlanksGivesItsWords) {
  const auto images = read(
      with_image(R"("id":1,"split":"val","sentences":[{"raw":"x","tokens":[" a\tb ","","c"]}])"));
  EXPECT_EQ(images[0].words, std::vector<std::string>{"a b c"});
}

TEST(Karpathy, SaysWhichImageIsWrong) {
  const std::string good = "\"id\":7,\"split\":\"train\"";
  EXPECT_EQ(karpathy_message(with_image("\"split\":\"train\"," + kSentences)),
            "x: image 1: cocoid, id and imgid are missing; one is needed");
  EXPECT_EQ(karpathy_message(with_image("\"id\":7," + kSentences)),
            "x: image 1 (id 7): split is missing");
  EXPECT_EQ(karpathy_message(with_image(good)),
            "x: image 1 (id 7): there are no captions (\"sentences\")");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"sentences\":[]")),
            "x: image 1 (id 7): there are no captions (\"sentences\")");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"sentences\":[{}]")),
            "x: image 1 (id 7): a sentence has no \"raw\"");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"sentences\":[{\"raw\":\"x\"},{}]")),
            "x: image 1 (id 7): a sentence has no \"raw\"");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"sentences\":[{\"raw\":\"x\"},3]")),
            "x: image 1 (id 7): a number has no place among the sentences");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"sentences\":[{\"raw\":1}]")),
            "x: image 1 (id 7): a number has no place in raw");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"sentences\":[{\"tokens\":[\"a\",null]}]")),
            "x: image 1 (id 7): null has no place in tokens");
  EXPECT_EQ(karpathy_message(with_image(good + ",\"id\":8")), "x: image 1 (id 7): id stands twice");
  EXPECT_EQ(karpathy_message(with_image("\"id\":-7")),
            "x: image 1: a negative number has no place in id");
  EXPECT_EQ(karpathy_message(with_image("\"id\":7.5")),
            "x: image 1: a fraction has no place in id");
  EXPECT_EQ(karpathy_message(with_image("\"id\":\"7\"")), "x: image 1: a text has no place in id");
  EXPECT_EQ(karpathy_message(with_image("\"id\":18446744073709551615")),
            "x: image 1: 18446744073709551615 is too large an id");
  EXPECT_EQ(karpathy_message("{\"images\":[4]}"), "x: a number has no place among the images");
  EXPECT_EQ(karpathy_message("{\"images\":{}}"), "x: an object has no place as images");
  EXPECT_EQ(karpathy_message("{\"images\":[],\"images\":[]}"), "x: \"images\" stands twice");
  EXPECT_EQ(karpathy_message("{\"annotations\":[]}"), "x: there is no list \"images\"");
  EXPECT_EQ(karpathy_message("[]"), "x: a list has no place at the top");
}

TEST(Karpathy, SaysWhereItIsNoJson) {
  EXPECT_EQ(karpathy_message(""), "x: byte 1: this is not JSON, or not UTF-8");
  EXPECT_EQ(karpathy_message("{\"images\":[NaN]}"), "x: byte 12: this is not JSON, or not UTF-8");
  EXPECT_EQ(karpathy_message("{\"a\":\"\xFF\"}"), "x: byte 7: this is not JSON, or not UTF-8");
  for (size_t size = 0; size < kCoco.size(); ++size) {
    EXPECT_NE(karpathy_message(kCoco.substr(0, size)), "no error") << size;
  }
}

TEST(Karpathy, DeepNestingIsNoDanger) {
  const std::string deep(1000000, '[');
  EXPECT_EQ(karpathy_message("{\"a\":" + deep).substr(0, 8), "x: byte ");
  EXPECT_EQ(karpathy_message("{\"a\":" + deep + std::string(1000000, ']') + ",\"images\":[]}"),
            "no error");
}

TEST(Karpathy, DamagedFilesAreReadOrRefused) {
  hdetach::expect_read_or_refused([](hdetach::Mutator& mutate, int) { return mutate(kCoco); },
                                  karpathy_message, "x: ");
}

}  // namespace
