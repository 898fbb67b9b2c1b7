// Folders of captions and features: both kinds, and every way in which they can be wrong.
#include <cmath>

#include "tests/caption_folder.h"

namespace {

using hdetach::tasks::CaptionData;
using hdetach::tasks::kUnknown;
using Strings = std::vector<std::string>;
using Floats = std::vector<float>;

// Five images as tables, four of which have features: rows 0 and 1 in one file, 2 and 3 in another.
class CaptionTables : public hdetach::CaptionFolder {
 protected:
  void SetUp() override {
    CaptionFolder::SetUp();
    put("x_images.tsv", kTitles + kImages);
    put("x_captions.tsv", kCaptions);
    put("feat/FORMAT.json", format("2"));
    put("feat/resnet50_pool_u8.a.bin", std::string("\x00\xFF\x33\x01\x02\x03", 6));
    put("feat/resnet50_pool_u8.b.bin", "\x04\x05\x06\x07\x08\x09");
    const auto code = [](int channel, int q) { return static_cast<uint16_t>(channel << 5 | q); };
    put("feat/resnet50_7x7_top32_u16.a.bin",
        bytes_of<uint16_t>({code(2047, 31), code(5, 4), code(1, 8), code(0, 0), code(1, 1),
                            code(2, 1), code(3, 1), code(4, 1)}));
    put("feat/resnet50_7x7_top32_u16.b.bin", bytes_of(std::vector<uint16_t>(8)));
    Floats fill(2048);
    for (size_t i = 0; i < fill.size(); ++i) fill[i] = static_cast<float>(i) / 2048;
    put("feat/resnet50_7x7_top32_fill_f32.bin", bytes_of(fill));
  }

  static std::string format(const std::string& middle) {
    return R"({"N": 4, "rows": [["a", 0, )" + middle + R"(], ["b", 2, 4]],
"pool": {"dtype": "uint8", "dim": 3, "decode": "x = 16*(c/255)^2"},
"spatial": {"dtype": "uint16 little-endian", "positions": 2, "k": 2,
"decode": "channel = u>>5; q = u&31; value = q==0 ? 0 : 0.25*2^(q/4); entries sorted by decreasing value; position = row*7+col"}})";
  }

  const std::string kTitles = "image_id\tkarpathy_split\tavailable\tfeature_row\n";
  const std::string kImages =
      "10\trestval\t1\t1\n11\tval\t1\t0\n12\trestval\t0\t-1\n13\ttest\t1\t2\n14\trestval\t1\t3\n";
  const std::string kCaptions =
      "11\tA cat sleeps.\n10\tA dog runs\n10\tThe dog, running!\n12\tA bird\n13\tA fish\n"
      "14\tA horse and a dog\n";
};

TEST_F(CaptionTables, AreRead) {
  options_.most_words = 3;
  const CaptionData data = read();
  ASSERT_EQ(data.train.size(), 2u);  // 12 has no features
  ASSERT_EQ(data.valid.size(), 1u);
  ASSERT_EQ(data.test.size(), 1u);
  EXPECT_EQ(data.train[0].id, 10);
  EXPECT_EQ(data.train[0].row, 1);
  EXPECT_EQ(data.train[0].references, (Strings{"a dog runs", "the dog running"}));
  EXPECT_EQ(data.train[1].references, Strings{"a horse and a dog"});
  // "dog" is in all three captions, the last time beyond the cut: words are counted before it.
  EXPECT_EQ(data.vocabulary.words(), (Strings{"<pad>", "<start>", "<end>", "<unk>", "a", "dog",
                                              "and", "horse", "running", "runs", "the"}));
  EXPECT_EQ(data.vocabulary.text(data.train[1].captions[0]), "a horse and");
  EXPECT_EQ(data.valid[0].captions[0], (std::vector<int32_t>{4, kUnknown, kUnknown}));
  options_.more_than = 2;
  EXPECT_EQ(read().vocabulary.size(), 6);
}

TEST_F(CaptionTables, MeansOfFeaturesAreDecoded) {
  const CaptionData data = read();
  ASSERT_EQ(data.features->images(), 4);
  ASSERT_EQ(data.features->positions(), 1);
  const auto decoded = [](int code) { return static_cast<float>(16 * std::pow(code / 255.0, 2)); };
  EXPECT_EQ(features(data, 0), (Floats{0, 16, decoded(0x33)}));
  EXPECT_EQ(features(data, 3), (Floats{decoded(7), decoded(8), decoded(9)}));
}

TEST_F(CaptionTables, FeaturesByPositionAreDecoded) {
  options_.spatial = true;
  const CaptionData data = read();
  ASSERT_EQ(data.features->positions(), 2);
  ASSERT_EQ(data.features->channels(), 2048);
  const Floats values = features(data, 0);
  EXPECT_FLOAT_EQ(values[2047], 0.25 * std::pow(2.0, 31 / 4.0));
  EXPECT_FLOAT_EQ(values[5], 0.5);
  EXPECT_EQ(values[6], 6 / 2048.0f);         // the fill
  EXPECT_FLOAT_EQ(values[2048 + 1], 1.0);    // the second position
  EXPECT_EQ(values[2048 + 0], 0.0f);         // a zero that is among the largest
  EXPECT_EQ(values[2048 + 5], 5 / 2048.0f);  // not the first position's
}

TEST_F(CaptionTables, CanBeLimited) {
  options_.train_images = 1;
  CaptionData data = read();
  EXPECT_EQ(data.train.size(), 1u);
  EXPECT_EQ(data.vocabulary.code("horse"), kUnknown);
  options_.train_images = 9;
  EXPECT_EQ(read().train.size(), 2u);
}

TEST_F(CaptionTables, OfImagesMustBeInOrder) {
  const auto with = [&](const std::string& line) {
    put("x_images.tsv", kTitles + kImages + line);
    return message();
  };
  const std::string start = "DIR/x_images.tsv: ", at = start + "line 7: ";
  EXPECT_EQ(with("15\ttest\t1\n"), at + "4 fields apart by tabs are expected, here are 3");
  EXPECT_EQ(with("NaN\ttest\t1\t-1\n"), at + "field 1 is `NaN`, not a whole number");
  EXPECT_EQ(with("-5\ttest\t1\t-1\n"), at + "an id cannot be negative");
  EXPECT_EQ(with("15\tTest\t1\t-1\n"), at + "split `Test` is not train, restval, val or test");
  EXPECT_EQ(with("15\ttest\t1\t-2\n"), at + "a row is -1 or more");
  EXPECT_EQ(with("15\ttest\t1\t3\n"), at + "row 3 stands twice");
  EXPECT_EQ(with("10\ttest\t1\t-1\n"), start + "id 10 stands twice");
  EXPECT_EQ(with("15\ttest\t1\t-1\n"), start + "id 15 has no caption");
  EXPECT_EQ(with("15\ttest\t1\t4\n").substr(0, 19), start + "i");
  put("x_captions.tsv", kCaptions + "15\tx\n");
  EXPECT_EQ(with("15\ttest\t1\t4\n"),
            "DIR: image 15 has row 4, but feat/ has features of 4 images");
  put("x_images.tsv", kImages);
  EXPECT_EQ(message(), start + "the first line must have titles, the first of them image_id");
  remove("x_images.tsv");
  EXPECT_EQ(message(), start + "cannot open: No such file or directory");
}

TEST_F(CaptionTables, OfCaptionsMustBeInOrder) {
  const auto with = [&](const std::string& line) {
    put("x_captions.tsv", kCaptions + line);
    return message();
  };
  const std::string at = "DIR/x_captions.tsv: line 7: ";
  EXPECT_EQ(with("99\tx\n"), at + "image 99 is not in DIR/x_images.tsv");
  EXPECT_EQ(with("10\t \t\n"), at + "no caption");
  EXPECT_EQ(with("10\n"), at + "2 fields apart by tabs are expected, here are 1");
  EXPECT_EQ(with("10\t\xC3(\n"), at + "the bytes are not UTF-8; save the file as UTF-8");
  EXPECT_EQ(with("10\t...\n"), "no error");
  put("x_captions.tsv", "10\tx\n11\t!\n12\tx\n13\tx\n14\tx\n");
  EXPECT_EQ(message(), "DIR: no caption of image 11 has a word");
  put("x_captions.tsv.gz", "");
  EXPECT_EQ(message(), "DIR: x_captions.tsv and x_captions.tsv.gz both have captions; keep one");
}

TEST_F(CaptionTables, CodedFeaturesMustMatchTheirFormat) {
  const auto with = [&](const std::string& text) {
    put("feat/FORMAT.json", text);
    return message();
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = format("2");
    return with(text.replace(text.find(from), from.size(), to));
  };
  const std::string at = "DIR/feat/FORMAT.json: ";
  EXPECT_EQ(with("{"), at + "not JSON");
  EXPECT_EQ(with(format("3")), "DIR/feat/resnet50_pool_u8.a.bin: 6 bytes, but 3 images have 9");
  EXPECT_EQ(with(format("0")), at + "rows 0 to 0 of a do not follow 0");
  EXPECT_EQ(replaced("\"b\", 2", "\"b\", 1"), at + "rows 1 to 4 of b do not follow 2");
  EXPECT_EQ(replaced("\"a\"", "\"../a\""), at + "\"../a\" is no name of a stretch");
  EXPECT_EQ(replaced("\"a\"", "1"),
            at + "rows has an entry that is not a name, a begin and an end");
  EXPECT_EQ(replaced("\"N\": 4", "\"N\": 5"), at + "N is 5, but the rows are 4");
  EXPECT_EQ(replaced("\"dim\": 3", "\"dim\": 0"), at + "pool: dim is 0, out of range");
  EXPECT_EQ(replaced("uint8", "float"),
            at + "pool: dtype is \"float\", but only \"uint8\" is known");
  EXPECT_EQ(replaced("16*", "17*").substr(0, 58), at + "pool: decode is \"x = 17*(c/255)^2\", ");
  options_.spatial = true;
  EXPECT_EQ(replaced("\"k\": 2", "\"k\": 3"),
            "DIR/feat/resnet50_7x7_top32_u16.a.bin: 16 bytes, but 2 images have 24");
  EXPECT_EQ(replaced("\"k\": 2", "\"k\": 4000"),
            at + "spatial: 2 positions of 4000 channels are too many");
  EXPECT_EQ(with(format("2")), "no error");
  put("feat/resnet50_7x7_top32_fill_f32.bin", "1234");
  EXPECT_EQ(message(),
            "DIR/feat/resnet50_7x7_top32_fill_f32.bin: 4 bytes, but 2048 channels have 8192");
  put("feat/resnet50_7x7_top32_fill_f32.bin", std::string(8192, '\xFF'));
  EXPECT_EQ(message(), "DIR/feat/resnet50_7x7_top32_fill_f32.bin: a value is not finite");
  remove("feat/resnet50_7x7_top32_u16.b.bin");
  EXPECT_EQ(message(),
            "DIR/feat/resnet50_7x7_top32_u16.b.bin: cannot map: No such file or directory");
}

// Three images in Karpathy's JSON, features by id.
class CaptionJson : public hdetach::CaptionFolder {
 protected:
  void SetUp() override {
    CaptionFolder::SetUp();
    put("dataset_x.json",
        dataset(R"({"imgid": 8, "split": "restval", "sentences": [{"raw": "x"}]})"));
    put_tensors("train.safetensors", "F32", {2, 3}, bytes_of<float>({1, 2, 3, 4, 5, 6}), {7, 5});
    put_tensors("val.safetensors", "F32", {1, 3}, bytes_of<float>({7, 8, 9}), {6});
  }

  static std::string dataset(const std::string& more) {
    return R"({"images": [
{"cocoid": 5, "split": "train", "sentences": [{"raw": "The dog's ball.", "tokens": ["the", "dogs", "ball"]},
                                             {"raw": "One dog."}]},
{"cocoid": 6, "split": "val", "sentences": [{"raw": "A ball", "tokens": ["a", "ball"]}]},
)" + more + "]}";
  }
};

TEST_F(CaptionJson, IsRead) {
  const CaptionData data = read();
  ASSERT_EQ(data.train.size(), 1u);  // 8 has no features, 7 no captions
  ASSERT_EQ(data.valid.size(), 1u);
  EXPECT_TRUE(data.test.empty());
  EXPECT_EQ(data.train[0].id, 5);
  EXPECT_EQ(data.train[0].references, (Strings{"the dog 's ball", "one dog"}));
  EXPECT_EQ(data.vocabulary.text(data.train[0].captions[0]), "the dogs ball");
  EXPECT_EQ(data.vocabulary.text(data.train[0].captions[1]), "one dog");
  EXPECT_EQ(features(data, data.train[0].row), (Floats{4, 5, 6}));
  EXPECT_EQ(features(data, data.valid[0].row), (Floats{7, 8, 9}));
}

TEST_F(CaptionJson, MustNameImagesOnceAndTheirSplits) {
  put("dataset_x.json", dataset(R"({"cocoid": 5, "split": "val", "sentences": [{"raw": "x"}]})"));
  EXPECT_EQ(message(), "DIR/dataset_x.json: id 5 stands twice");
  put("dataset_x.json", dataset(R"({"cocoid": 9, "split": "dev", "sentences": [{"raw": "x"}]})"));
  EXPECT_EQ(message(),
            "DIR/dataset_x.json: image id 9: split `dev` is not train, restval, val or test");
  put("dataset_x.json", dataset(R"({"cocoid": 9, "split": "val", "sentences": []})"));
  EXPECT_EQ(message(), "DIR/dataset_x.json: image 3 (id 9): there are no captions (\"sentences\")");
  put("dataset_y.json", "");
  EXPECT_EQ(message(), "DIR: dataset_x.json and dataset_y.json both have captions; keep one");
}

TEST_F(CaptionJson, EveryHalfFloatIsDecoded) {
  std::vector<uint16_t> codes;
  Floats expected;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const int exponent = static_cast<int>(code >> 10 & 31),
              mantissa = static_cast<int>(code & 1023);
    if (exponent == 31) continue;  // not finite
    const float size = exponent == 0
                           ? std::ldexp(static_cast<float>(mantissa), -24)
                           : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
    codes.push_back(static_cast<uint16_t>(code));
    expected.push_back((code & 0x8000) != 0 ? -size : size);
  }
  const auto count = static_cast<int64_t>(codes.size());
  put_tensors("train.safetensors", "F16", {1, count}, bytes_of(codes), {5});
  put_tensors("val.safetensors", "F16", {1, count}, bytes_of(codes), {6});
  EXPECT_EQ(bytes_of(features(read(), 0)), bytes_of(expected));
  put_tensors("train.safetensors", "BF16", {1, 3}, bytes_of<uint16_t>({0x3F80, 0xC000, 1}), {5});
  put_tensors("val.safetensors", "F16", {1, 3}, bytes_of<uint16_t>({0, 0, 0}), {6});
  EXPECT_EQ(features(read(), 0), (Floats{1, -2, std::ldexp(1.0f, -133)}));
}

TEST_F(CaptionJson, PositionsAreGivenOrTheirMean) {
  put_tensors("train.safetensors", "F32", {1, 2, 2}, bytes_of<float>({1, 2, 3, 5}), {5});
  put_tensors("val.safetensors", "F16", {1, 2, 2},
              bytes_of<uint16_t>({0x3C00, 0x3C00, 0x4000, 0x3C00}), {6});
  EXPECT_EQ(features(read(), 0), (Floats{2, 3.5}));
  EXPECT_EQ(features(read(), 1), (Floats{1.5, 1}));
  options_.spatial = true;
  const CaptionData data = read();
  EXPECT_EQ(data.features->positions(), 2);
  EXPECT_EQ(features(data, 1), (Floats{1, 1, 2, 1}));
}

TEST_F(CaptionJson, TensorsMustMatch) {
  const std::string one = bytes_of<float>({1, 2, 3}), at = "DIR/val.safetensors: ";
  const auto with = [&](const std::string& dtype, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& ids) {
    put_tensors("val.safetensors", dtype, shape, one, ids);
    return message();
  };
  EXPECT_EQ(with("I32", {1, 3}, {6}), at + "features are I32; F32, F16 and BF16 can be read");
  EXPECT_EQ(with("F32", {1, 3}, {6, 9}),
            at + "ids must be 1 numbers I64, one for each image of features");
  EXPECT_EQ(with("F32", {3}, {6}),
            at + "features must be [images, channels] or [images, positions, channels], none of "
                 "them 0");
  EXPECT_EQ(with("F32", {0, 3}, {}),
            at + "features must be [images, channels] or [images, positions, channels], none of "
                 "them 0");
  EXPECT_EQ(with("F32", {1, 3}, {7}), at + "id 7 of row 0 stands twice");
  EXPECT_EQ(with("F32", {1, 2}, {6}),
            at + "an image has 1 x 2 features, but 1 x 3 in DIR/train.safetensors");
  put("val.safetensors",
      hdetach::safetensors::serialize({{"features", "F32", {1, 3}, one.data()}}, {}));
  EXPECT_EQ(message(), at + "there is no array \"ids\"");
  put("val.safetensors", "{}");
  EXPECT_EQ(message(),
            at + "byte 2: the file ends inside the size of its header, which has 8 bytes");
  remove("val.safetensors");
  EXPECT_EQ(message(), "DIR: no image of the validation split has features");
  options_.spatial = true;
  EXPECT_EQ(message(),
            "DIR/train.safetensors: features have no positions, which this model looks at");
}

TEST_F(CaptionJson, FeaturesThatAreNotFiniteAreRefused) {
  for (const uint16_t bad : {0x7C00, 0xFC00, 0x7E00}) {
    put_tensors("val.safetensors", "F16", {1, 3}, bytes_of<uint16_t>({0, bad, 0}), {6});
    try {
      read();  // the checksum of the data has it read
      FAIL() << bad;
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()),
                options_.folder + "/val.safetensors: features of row 0 are not finite");
    }
  }
}

TEST_F(CaptionJson, UnfinishedFeaturesAreRefused) {
  put("train.safetensors.part", "");
  EXPECT_EQ(message(),
            "DIR: train.safetensors.part: the features are not all there; hdetach features, "
            "started as before, makes the others");
}

TEST_F(CaptionJson, FoldersWithoutOneKindAreRefused) {
  put("feat/FORMAT.json", "{}");
  EXPECT_EQ(message(), "DIR: train.safetensors and feat/FORMAT.json both have features; keep one");
  remove("feat/FORMAT.json");
  remove("train.safetensors");
  remove("val.safetensors");
  EXPECT_EQ(message(),
            "DIR: no features are found; looked for train.safetensors, valid.safetensors, "
            "val.safetensors, test.safetensors and feat/FORMAT.json");
  remove("dataset_x.json");
  put_tensors("test.safetensors", "F32", {1, 1}, bytes_of<float>({1}), {6});
  EXPECT_EQ(message(),
            "DIR: no captions are found; looked for dataset*.json, *_captions.tsv and "
            "*_captions.tsv.gz");
  std::filesystem::remove_all(options_.folder);
  EXPECT_EQ(message(), "DIR: cannot read the folder: No such file or directory");
}

TEST_F(CaptionTables, KarpathysJsonHasNoRows) {
  remove("x_captions.tsv");
  put("dataset.json", R"({"images":[{"id":1,"split":"val","sentences":[{"raw":"x"}]}]})");
  EXPECT_EQ(message(),
            "DIR: feat/ has features by row, but the list of captions tells no rows; put features "
            "by id there, in train.safetensors and so on");
}

}  // namespace
