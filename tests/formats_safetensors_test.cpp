// safetensors: the exact bytes that are written, and every way in which a file can lie.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "tests/mutate.h"

namespace {

namespace safetensors = hdetach::safetensors;

// A file with this header, as it is, and this data.
std::string file(const std::string& header, const std::string& data = "") {
  const uint64_t size = header.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes + header + data;
}

std::string array(const std::string& name, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string safetensors_message(const std::string& bytes) {
  try {
    safetensors::parse(bytes, "x");
  } catch (const safetensors::Error& error) {
    return error.what();
  }
  return "no error";
}

std::string write_message(const std::vector<safetensors::View>& arrays,
                          const safetensors::Metadata& metadata = {}) {
  try {
    safetensors::serialize(arrays, metadata);
  } catch (const safetensors::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Safetensors, WritesTheseBytes) {
  const float weights[] = {1.0f, -2.0f};
  const std::string bytes =
      safetensors::serialize({{"w", "F32", {2, 1}, weights}}, {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  EXPECT_EQ(bytes, file(header + std::string(8 - header.size() % 8, ' '),
                        std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8)));
}

TEST(Safetensors, ReadsWhatItWrites) {
  const double doubles[] = {1.5, 2.5, 3.5};
  const int64_t number = -7;
  const std::string text = "abc";
  const std::string name = "a \"quoted\" name \xC3\xA9";
  const safetensors::Metadata metadata = {{"seed", "1"}, {"config", "lr = 1e-3\n"}};
  const safetensors::File read =
      safetensors::parse(safetensors::serialize({{"bytes", "U8", {3}, text.data()},
                                                 {name, "F64", {3, 1}, doubles},
                                                 {"none", "F32", {0, 4}, nullptr},
                                                 {"scalar", "I64", {}, &number}},
                                                metadata),
                         "x");
  EXPECT_EQ(read.metadata, metadata);
  ASSERT_EQ(read.arrays.size(), 4u);
  const safetensors::Array* found = read.find(name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->dtype, "F64");
  EXPECT_EQ(found->shape, (std::vector<int64_t>{3, 1}));
  ASSERT_EQ(found->size, sizeof(doubles));
  EXPECT_EQ(std::memcmp(found->data, doubles, sizeof(doubles)), 0);
  EXPECT_TRUE(read.find("scalar")->shape.empty());
  EXPECT_EQ(std::memcmp(read.find("scalar")->data, &number, sizeof(number)), 0);
  EXPECT_EQ(std::string(read.find("bytes")->data, read.find("bytes")->size), text);
  EXPECT_EQ(read.find("none")->size, 0u);
  EXPECT_EQ(read.find("absent"), nullptr);
}

TEST(Safetensors, ArraysAreAlignedToTheirType) {
  const double zeros[8] = {};
  const std::string bytes = safetensors::serialize({{"a", "U8", {3}, zeros},
                                                    {"b", "F16", {1}, zeros},
                                                    {"c", "F64", {1}, zeros},
                                                    {"d", "F32", {1}, zeros},
                                                    {"e", "F64", {1}, zeros}},
                                                   {});
  const safetensors::File read = safetensors::parse(bytes, "x");
  std::string order;
  for (const safetensors::Array& array : read.arrays) {
    order += array.name;
    const size_t offset = static_cast<size_t>(array.data - read.bytes.data());
    const size_t element = array.name == "a" ? 1 : array.size;
    EXPECT_EQ(offset % element, 0u) << array.name;
  }
  EXPECT_EQ(order, "cedba");
}

TEST(Safetensors, AFileWithoutArraysIsAFile) {
  EXPECT_EQ(safetensors::serialize({}, {}), file("{}      "));
  EXPECT_TRUE(safetensors::parse(safetensors::serialize({}, {}), "x").arrays.empty());
}

TEST(Safetensors, ReadsEveryTypeOfTheFormat) {
  const std::vector<std::pair<std::string, int>> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  const double zeros[2] = {};
  for (const auto& [dtype, size] : sizes) {
    const auto read =
        safetensors::parse(safetensors::serialize({{"a", dtype, {2}, zeros}}, {}), "x");
    EXPECT_EQ(read.arrays[0].size, static_cast<size_t>(2 * size)) << dtype;
  }
}

// As the Python package writes it: other order of the fields, arrays in any order, spaces.
TEST(Safetensors, ReadsAHeaderInAnyOrder) {
  const safetensors::File read = safetensors::parse(
      file(R"({ "b": {"data_offsets": [1, 3], "shape": [1, 2], "dtype": "U8"},)"
           R"( "a": {"shape": [], "dtype": "I8", "data_offsets": [0, 1]}, "__metadata__": {} }  )",
           "xyz"),
      "x");
  ASSERT_EQ(read.arrays.size(), 2u);
  EXPECT_EQ(read.arrays[0].name, "a");
  EXPECT_EQ(read.arrays[1].data, read.bytes.data() + read.bytes.size() - 2);
}

TEST(Safetensors, RefusesALyingHeaderSize) {
  EXPECT_EQ(safetensors_message(""),
            "x: byte 0: the file ends inside the size of its header, which has 8 bytes");
  EXPECT_EQ(safetensors_message("1234567"),
            "x: byte 7: the file ends inside the size of its header, which has 8 bytes");
  EXPECT_EQ(safetensors_message(file("{}").substr(0, 9)),
            "x: byte 0: a header of 2 bytes is promised, in a file of 9; the most is 100000000");
  EXPECT_EQ(safetensors_message(std::string(8, '\xFF') + "{}"),
            "x: byte 0: a header of 18446744073709551615 bytes is promised, in a file of 10; the "
            "most is 100000000");
  EXPECT_EQ(safetensors_message(file("")), "x: byte 8: the header must start with {");
  EXPECT_EQ(safetensors_message(file(" {}")), "x: byte 8: the header must start with {");
  EXPECT_EQ(safetensors_message(file("[]")), "x: byte 8: the header must start with {");
}

TEST(Safetensors, RefusesAHeaderOverTheLimit) {
  EXPECT_EQ(safetensors_message(file("{" + std::string(100'000'000, ' ') + "}")),
            "x: byte 0: a header of 100000002 bytes is promised, in a file of 100000010; the most "
            "is 100000000");
}

TEST(Safetensors, RefusesBadJson) {
  EXPECT_EQ(safetensors_message(file("{\"a\"")), "x: byte 12: the header is not valid JSON");
  EXPECT_EQ(safetensors_message(file("{} x")), "x: byte 12: the header is not valid JSON");
  EXPECT_EQ(safetensors_message(file("{\"\xFF\":1}")), "x: byte 11: the header is not valid JSON");
  EXPECT_EQ(safetensors_message(file(std::string("{}\0{", 4))),
            "x: byte 10: zero byte in the header");
}

TEST(Safetensors, RefusesNestingWithoutGoingDeep) {
  std::string deep = "{\"a\":";
  for (int i = 0; i < 1'000'000; ++i) deep += "{\"a\":";
  EXPECT_EQ(safetensors_message(file(deep)), "x: byte 17: array \"a\" has an unknown field \"a\"");
  EXPECT_EQ(safetensors_message(file("{\"a\":" + std::string(1'000'000, '['))),
            "x: byte 14: the header has a list where the format has none, at or after \"a\"");
  EXPECT_EQ(safetensors_message(file("{\"a\":{\"shape\":" + std::string(1'000'000, '['))),
            "x: byte 24: the header has a list where the format has none, at or after \"shape\"");
}

TEST(Safetensors, RefusesWrongFields) {
  const auto with = [](const std::string& fields) {
    return safetensors_message(file("{\"a\":{" + fields + "}}"));
  };
  const std::string end = ": dtype, shape or data_offsets is missing";
  EXPECT_EQ(with(""), "x: byte 15: array \"a\"" + end);
  EXPECT_EQ(with(R"("dtype":"U8","shape":[0])"), "x: byte 39: array \"a\"" + end);
  EXPECT_EQ(with(R"("dtype":"U9","shape":[0],"data_offsets":[0,0])"),
            "x: byte 60: array \"a\": unknown dtype \"U9\"");
  EXPECT_EQ(with(R"("dtype":"U8","dtype":"U8")"),
            "x: byte 34: array \"a\" has two fields \"dtype\"");
  EXPECT_EQ(with(R"("extra":1)"), "x: byte 21: array \"a\" has an unknown field \"extra\"");
  EXPECT_EQ(with(R"("dtype":1)"),
            "x: byte 24: the header has a number where the format has none, at or after \"dtype\"");
  EXPECT_EQ(with(R"("shape":[1.5])"),
            "x: byte 27: the header has a fraction or a number beyond 64 bits where the format has "
            "none, at or after \"shape\"");
  EXPECT_EQ(with(R"("shape":[-1])"),
            "x: byte 26: the header has a negative number where the format has none, at or after "
            "\"shape\"");
  EXPECT_EQ(with(R"("shape":[9223372036854775808])"),
            "x: byte 43: array \"a\": 9223372036854775808 is too large");
  EXPECT_EQ(with(R"("shape":[null])"),
            "x: byte 27: the header has null where the format has none, at or after \"shape\"");
  EXPECT_EQ(with(R"("dtype":"U8","shape":[0],"data_offsets":[0])"),
            "x: byte 58: array \"a\": data_offsets [0] are not a begin and an end");
  EXPECT_EQ(with(R"("dtype":"U8","shape":[0],"data_offsets":[1,0])"),
            "x: byte 60: array \"a\": data_offsets [1,0] are not a begin and an end");
}

TEST(Safetensors, RefusesWrongMetadata) {
  EXPECT_EQ(safetensors_message(file(R"({"__metadata__":{"a":1}})")),
            "x: byte 31: the header has a number where the format has none, at or after \"a\"");
  EXPECT_EQ(safetensors_message(file(R"({"__metadata__":"a"})")),
            "x: byte 27: the header has a string where the format has none, at or after "
            "\"__metadata__\"");
  EXPECT_EQ(safetensors_message(file(R"({"__metadata__":{"a":"","a":""}})")),
            "x: byte 35: \"a\" stands twice in __metadata__");
}

TEST(Safetensors, RefusesShapesThatDoNotMatchTheBytes) {
  const auto with = [](const std::string& dtype, const std::string& shape) {
    return safetensors_message(
        file("{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[0,4]}}",
             "1234"));
  };
  EXPECT_EQ(with("U8", "[4]"), "no error");
  EXPECT_EQ(with("F32", "[]"), "no error");
  EXPECT_EQ(with("F32", "[2]"),
            "x: byte 61: array \"a\": 4 bytes do not match dtype F32 and shape [2]");
  EXPECT_EQ(with("U8", "[]"),
            "x: byte 59: array \"a\": 4 bytes do not match dtype U8 and shape []");
  // 2^62 * 4 + 4 bytes, modulo 2^64.
  EXPECT_EQ(with("F32", "[4611686018427387905]"),
            "x: byte 79: array \"a\": 4 bytes do not match dtype F32 and shape "
            "[4611686018427387905]");
}

TEST(Safetensors, RefusesHolesOverlapsAndLoss) {
  EXPECT_EQ(
      safetensors_message(file("{" + array("a", 0, 2) + "," + array("b", 2, 4) + "}", "1234")),
      "no error");
  const auto data_of = [](const std::string& header) { return std::to_string(8 + header.size()); };
  std::string header = "{" + array("a", 0, 2) + "," + array("b", 3, 4) + "}";
  EXPECT_EQ(
      safetensors_message(file(header, "1234")),
      "x: byte " + std::to_string(8 + header.size() + 2) + ": array \"b\" leaves a hole before it");
  header = "{" + array("a", 0, 3) + "," + array("b", 2, 4) + "}";
  EXPECT_EQ(safetensors_message(file(header, "1234")),
            "x: byte " + std::to_string(8 + header.size() + 2) +
                ": array \"b\" overlaps the one before it");
  header = "{" + array("a", 1, 4) + "}";
  EXPECT_EQ(safetensors_message(file(header, "1234")),
            "x: byte " + data_of(header) + ": array \"a\" leaves a hole before it");
  header = "{" + array("a", 0, 5) + "}";
  EXPECT_EQ(safetensors_message(file(header, "1234")),
            "x: byte " + data_of(header) + ": array \"a\" reaches beyond the end of the file");
  header = "{" + array("a", 0, 3) + "}";
  EXPECT_EQ(
      safetensors_message(file(header, "1234")),
      "x: byte " + std::to_string(8 + header.size() + 3) + ": no array covers the last 1 bytes");
  EXPECT_EQ(safetensors_message(file("{}", "1234")),
            "x: byte 10: no array covers the last 4 bytes");
}

TEST(Safetensors, RefusesANameTwice) {
  EXPECT_EQ(safetensors_message(file("{" + array("a", 0, 1) + "," + array("a", 1, 2) + "}", "12")),
            "x: byte 64: \"a\" stands twice in the header");
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const double zeros[4] = {};
  EXPECT_EQ(write_message({{"a", "U8", {1}, zeros}, {"a", "U8", {1}, zeros}}),
            "safetensors: array \"a\": the name is taken; choose another");
  EXPECT_EQ(write_message({{"__metadata__", "U8", {1}, zeros}}),
            "safetensors: array \"__metadata__\": the name is taken; choose another");
  EXPECT_EQ(write_message({{"a", "float", {1}, zeros}}),
            "safetensors: array \"a\": the format has no dtype \"float\"");
  EXPECT_EQ(write_message({{"a", "U8", {-1}, zeros}}),
            "safetensors: array \"a\": the shape is negative or too large");
  EXPECT_EQ(write_message({{"\xFF", "U8", {1}, zeros}}),
            "safetensors: a name or a metadata string is not UTF-8; write it as UTF-8");
  EXPECT_EQ(write_message({}, {{"a", "\xFF"}}),
            "safetensors: a name or a metadata string is not UTF-8; write it as UTF-8");
}

TEST(Safetensors, DamagedFilesAreReadOrRefused) {
  const double data[4] = {1, 2, 3, 4};
  const std::string good = safetensors::serialize(
      {{"w", "F64", {2, 2}, data}, {"b", "F32", {2}, data}, {"n", "U8", {0}, data}}, {{"k", "v"}});
  hdetach::expect_read_or_refused(
      [&](hdetach::Mutator& mutate, int i) {
        std::string bytes = mutate(good);
        // Half of them keep a true header size: the damage then reaches what lies behind it.
        const size_t end = bytes.rfind('}');
        if (i % 2 == 0 && end != std::string::npos && end > 8) {
          const uint64_t size = end - 7;
          std::memcpy(bytes.data(), &size, sizeof(size));
        }
        return bytes;
      },
      safetensors_message, "x: byte ");
}

}  // namespace
