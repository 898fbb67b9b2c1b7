// MNIST's four files, from the drawn sample in tests/data: what is read, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "error_text.h"
#include "formats/files.h"
#include "tasks/mnist_files.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using hdetach::read_mnist;

const fs::path kSample = fs::path(HDETACH_TEST_DATA) / "mnist-sample";

#ifdef HDETACH_WITH_ZLIB
TEST(MnistFiles, ReadsTheSample) {
  const hdetach::MnistFiles mnist = read_mnist(kSample);
  EXPECT_EQ(mnist.train.size(), 200);
  EXPECT_EQ(mnist.test.size(), 50);
  for (const hdetach::MnistData* data : {&mnist.train, &mnist.test}) {
    EXPECT_EQ(data->rows, 28);
    EXPECT_EQ(data->columns, 28);
    EXPECT_EQ(data->images.size(), static_cast<size_t>(data->size() * 28 * 28));
    std::array<int, 10> counts{};
    for (const uint8_t label : data->labels) ++counts[label];
    for (const int count : counts) EXPECT_EQ(count, data->size() / 10);
  }
  // A one of the font has 10 dots of 3x3 pixels: images and labels belong together.
  for (int64_t i = 0; i < mnist.train.size(); ++i) {
    if (mnist.train.labels[static_cast<size_t>(i)] != 1) continue;
    const auto image = mnist.train.images.begin() + i * 28 * 28;
    EXPECT_EQ(28 * 28 - std::count(image, image + 28 * 28, 0), 10 * 9) << i;
  }
}
#endif

// Four plain files: two training images of 1x2, one test image.
class MnistFolder : public hdetach::FilesFolder {
 protected:
  void SetUp() override {
    put("train-images-idx3-ubyte", images(2, 1, 2) + "abcd");
    put("train-labels-idx1-ubyte", labels(2) + "\x03\x09");
    put("t10k-images-idx3-ubyte", images(1, 1, 2) + "ef");
    put("t10k-labels-idx1-ubyte", labels(1) + std::string(1, '\0'));
  }

  static std::string images(char count, char rows, char columns) {
    return {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, rows, 0, 0, 0, columns};
  }
  static std::string labels(char count) { return {0, 0, 8, 1, 0, 0, 0, count}; }

  // What reading throws, each mention of the folder replaced by DIR.
  std::string message() const {
    return hdetach::test::error_text(folder_, [&] { read_mnist(folder_); });
  }
};

TEST_F(MnistFolder, ReadsPlainFiles) {
  const hdetach::MnistFiles mnist = read_mnist(folder_);
  EXPECT_EQ(mnist.train.size(), 2);
  EXPECT_EQ(mnist.train.columns, 2);
  EXPECT_EQ(mnist.train.images, (std::vector<uint8_t>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(mnist.train.labels, (std::vector<uint8_t>{3, 9}));
  EXPECT_EQ(mnist.test.images, (std::vector<uint8_t>{'e', 'f'}));
}

TEST_F(MnistFolder, PlainFilesComeBeforeGzippedOnes) {
  put("train-images-idx3-ubyte.gz", "\x1F\x8B not gzip");
  EXPECT_EQ(message(), "no error");
}

TEST_F(MnistFolder, AMissingFileSaysHowToGetIt) {
  fs::remove(folder_ / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(message(),
            "DIR/t10k-labels-idx1-ubyte: not found, nor with .gz; put the four MNIST files there, "
            "or run: hdetach data mnist --out DIR");
}

TEST_F(MnistFolder, AMissingFolderSaysHowToGetTheFiles) {
  fs::remove_all(folder_);
  EXPECT_EQ(message(),
            "DIR/train-images-idx3-ubyte: not found, nor with .gz; put the four MNIST files there, "
            "or run: hdetach data mnist --out DIR");
}

TEST_F(MnistFolder, RefusesMoreLabelsThanImages) {
  put("train-labels-idx1-ubyte", labels(3) + "\x01\x02\x03");
  EXPECT_EQ(message(),
            "DIR/train-labels-idx1-ubyte: byte 4: 3 labels, but DIR/train-images-idx3-ubyte has 2 "
            "images");
}

TEST_F(MnistFolder, RefusesTestImagesOfAnotherSize) {
  put("t10k-images-idx3-ubyte", images(1, 2, 1) + "ef");
  EXPECT_EQ(
      message(),
      "DIR: training images are 1 x 2 pixels, test images 2 x 1; take both from one data set");
}

TEST_F(MnistFolder, RefusesALabelThatIsNoDigit) {
  put("train-labels-idx1-ubyte", labels(2) + "\x03\x0A");
  EXPECT_EQ(message(), "DIR/train-labels-idx1-ubyte: byte 9: label 10 is no digit");
}

TEST_F(MnistFolder, RefusesImagesThatAreNone) {
  put("train-images-idx3-ubyte", images(0, 1, 2));
  EXPECT_EQ(message(), "DIR/train-images-idx3-ubyte: byte 4: there is no image");
  put("train-images-idx3-ubyte", images(2, 1, 0));
  EXPECT_EQ(message(), "DIR/train-images-idx3-ubyte: byte 12: an image of 1 x 0 has no pixel");
}

TEST_F(MnistFolder, RefusesSwappedFiles) {
  fs::rename(folder_ / "t10k-labels-idx1-ubyte", folder_ / "t10k-images-idx3-ubyte");
  EXPECT_EQ(message(),
            "DIR/t10k-images-idx3-ubyte: byte 3: the array has 1 dimensions, expected 3");
}

TEST_F(MnistFolder, RefusesATruncatedFile) {
  put("train-images-idx3-ubyte", images(2, 1, 2) + "abc");
  EXPECT_EQ(message(),
            "DIR/train-images-idx3-ubyte: byte 19: the file ends here, 1 bytes before the end of "
            "its array of 2 x 1 x 2 bytes");
}

#ifdef HDETACH_WITH_ZLIB
TEST_F(MnistFolder, RefusesATruncatedGzip) {
  const std::string whole = hdetach::files::read(kSample / "train-images-idx3-ubyte.gz");
  fs::remove(folder_ / "train-images-idx3-ubyte");
  put("train-images-idx3-ubyte.gz", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(message(), "DIR/train-images-idx3-ubyte.gz: byte " + std::to_string(whole.size() / 2) +
                           ": the gzip file ends early; fetch it again");
}
#endif

}  // namespace
