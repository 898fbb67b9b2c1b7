// IDX: good files, and every way in which a header can lie.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/idx.h"
#include "tests/mutate.h"

namespace {

namespace idx = hdetach::idx;

std::string header(const std::vector<uint32_t>& shape, unsigned type = 8) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xFF);
  }
  return bytes;
}

std::string idx_message(const std::string& bytes, int dimensions) {
  try {
    idx::parse(bytes, "x", dimensions);
  } catch (const idx::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Idx, ReadsImagesAndLabels) {
  const idx::Array images = idx::parse(header({2, 1, 3}) + "\x01\x02\x03\x04\x05\xFF", "x", 3);
  EXPECT_EQ(images.shape, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(images.data, (std::vector<uint8_t>{1, 2, 3, 4, 5, 255}));
  const idx::Array labels = idx::parse(header({4}) + "abcd", "x", 1);
  EXPECT_EQ(labels.shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(labels.data, (std::vector<uint8_t>{'a', 'b', 'c', 'd'}));
}

TEST(Idx, ReadsAnEmptyArray) {
  const idx::Array array = idx::parse(header({0, 28, 28}), "x", 3);
  EXPECT_EQ(array.shape, (std::vector<int64_t>{0, 28, 28}));
  EXPECT_TRUE(array.data.empty());
}

TEST(Idx, RefusesAWrongMagicNumber) {
  EXPECT_EQ(idx_message("\x1F\x8B\x08\x01junk", 1),
            "x: byte 0: this is not an IDX file: it must start with two zeros");
  EXPECT_EQ(idx_message(header({1}, 0x0D) + "1234", 1),
            "x: byte 2: type 13, but only type 8, unsigned bytes, is read");
  EXPECT_EQ(idx_message(header({1}) + "1", 3), "x: byte 3: the array has 1 dimensions, expected 3");
}

TEST(Idx, RefusesATruncatedFile) {
  const std::string whole = header({2, 2, 2}) + "12345678";
  EXPECT_EQ(idx_message("", 3), "x: byte 0: the file is empty");
  EXPECT_EQ(idx_message(whole.substr(0, 3), 3),
            "x: byte 3: the file ends inside the magic number, which has 4 bytes");
  EXPECT_EQ(idx_message(whole.substr(0, 15), 3),
            "x: byte 15: the file ends inside the header, which has 16 bytes");
  EXPECT_EQ(
      idx_message(whole.substr(0, 21), 3),
      "x: byte 21: the file ends here, 3 bytes before the end of its array of 2 x 2 x 2 bytes");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(idx_message(whole.substr(0, size), 3), "no error") << size;
  }
  EXPECT_EQ(idx_message(whole, 3), "no error");
}

TEST(Idx, RefusesBytesBehindTheArray) {
  EXPECT_EQ(idx_message(header({3}) + "12345", 1),
            "x: byte 11: the array of 3 bytes ends here, but 2 bytes follow");
}

TEST(Idx, RefusesHugeDimensionsWithoutAskingForMemory) {
  const uint32_t most = 0xFFFFFFFF;
  EXPECT_EQ(idx_message(header({most}) + "1", 1),
            "x: byte 9: the file ends here, 4294967294 bytes before the end of its array of "
            "4294967295 bytes");
  // The product overflows at the second dimension, and would come out small.
  EXPECT_EQ(
      idx_message(header({most, most, most}), 3),
      "x: byte 8: the dimensions 4294967295 x 4294967295 are more bytes than a file can have");
  EXPECT_EQ(idx_message(header({0x80000000, 0x80000000, 4}), 3),
            "x: byte 12: the dimensions 2147483648 x 2147483648 x 4 are more bytes than a file can "
            "have");
}

TEST(Idx, DamagedFilesAreReadOrRefused) {
  const std::string good = header({2, 3, 3}) + "123456789123456789";
  hdetach::expect_read_or_refused([&](hdetach::Mutator& mutate, int) { return mutate(good); },
                                  [](const std::string& bytes) { return idx_message(bytes, 3); },
                                  "x: byte ");
}

}  // namespace
