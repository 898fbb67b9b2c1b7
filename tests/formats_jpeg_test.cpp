#include "formats/jpeg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/mutate.h"
#ifdef HDETACH_WITH_JPEG
#include "tests/jpeg_images.h"

namespace hdetach {
namespace {

constexpr int kWidth = 37, kHeight = 21;

std::string jpeg_message(const std::string& bytes) {
  try {
    jpeg::decode(bytes, "x.jpg");
  } catch (const jpeg::Error& error) {
    return error.what();
  }
  return "no error";
}

// JPEG at quality 95, with colours at half the resolution, is off by a few steps.
void expect_near(const jpeg::Image& image, const std::vector<uint8_t>& pixels, int most) {
  ASSERT_EQ(image.width, kWidth);
  ASSERT_EQ(image.height, kHeight);
  ASSERT_EQ(image.pixels.size(), pixels.size());
  int worst = 0;
  for (size_t i = 0; i < pixels.size(); ++i) {
    worst = std::max(worst, std::abs(image.pixels[i] - pixels[i]));
  }
  EXPECT_LE(worst, most);
}

TEST(Jpeg, EveryColourSpaceBecomesRgb) {
  const std::vector<uint8_t> rgb = slope(kWidth, kHeight, 90);
  std::vector<uint8_t> cmyk, grey, grey_rgb;
  for (size_t i = 0; i < rgb.size(); i += 3) {
    // Adobe's way, which libjpeg's marker tells: 255 is no ink. Half the light is taken by black.
    for (size_t colour = 0; colour < 3; ++colour) cmyk.push_back(rgb[i + colour]);
    cmyk.push_back(128);
    grey.push_back(rgb[i]);
    grey_rgb.insert(grey_rgb.end(), 3, rgb[i]);
  }
  std::vector<uint8_t> darker = rgb;
  for (uint8_t& value : darker) value = static_cast<uint8_t>(value * 128 / 255);
  const auto decoded = [](const std::vector<uint8_t>& pixels, const JpegKind& kind) {
    return jpeg::decode(encode_jpeg(pixels, kWidth, kHeight, kind), "x.jpg");
  };
  expect_near(decoded(rgb, {JCS_RGB, JCS_YCbCr, false}), rgb, 12);
  expect_near(decoded(rgb, {JCS_RGB, JCS_YCbCr, true}), rgb, 12);
  expect_near(decoded(rgb, {JCS_RGB, JCS_RGB, false}), rgb, 6);
  expect_near(decoded(grey, {JCS_GRAYSCALE, JCS_GRAYSCALE, false}), grey_rgb, 4);
  expect_near(decoded(cmyk, {JCS_CMYK, JCS_CMYK, false}), darker, 6);
  expect_near(decoded(cmyk, {JCS_CMYK, JCS_YCCK, false}), darker, 12);
}

TEST(Jpeg, CmykWithoutAdobesMarkerIsInk) {
  std::vector<uint8_t> inks;
  for (int i = 0; i < kWidth * kHeight; ++i) inks.insert(inks.end(), {200, 100, 0, 51});
  std::string bytes = encode_jpeg(inks, kWidth, kHeight, {JCS_CMYK, JCS_CMYK, false});
  const size_t marker = bytes.find("Adobe");
  ASSERT_NE(marker, std::string::npos);
  bytes[marker] = 'B';  // no longer what it was: libjpeg passes over it
  const jpeg::Image image = jpeg::decode(bytes, "x.jpg");
  EXPECT_NEAR(image.pixels[0], 55 * 204 / 255, 3);
  EXPECT_NEAR(image.pixels[1], 155 * 204 / 255, 3);
  EXPECT_NEAR(image.pixels[2], 204, 3);
}

TEST(Jpeg, WhatIsNotAWholeImageIsAnError) {
  EXPECT_EQ(jpeg_message(""), "x.jpg: the file is empty");
  EXPECT_EQ(jpeg_message("\x89PNG\r\n\x1A\n"),
            "x.jpg: not a JPEG image that can be read: Not a JPEG file: starts with 0x89 0x50");
  for (const bool progressive : {false, true}) {
    const std::string whole =
        encode_jpeg(slope(kWidth, kHeight, 90), kWidth, kHeight, {JCS_RGB, JCS_YCbCr, progressive});
    // Without the last two bytes, the mark of the end, all pixels are there; still it is cut.
    for (size_t size = 1; size < whole.size(); ++size) {
      EXPECT_NE(jpeg_message(whole.substr(0, size)), "no error") << size;
    }
    EXPECT_EQ(jpeg_message(whole + "more"), "no error");
  }
}

TEST(Jpeg, AbsurdSizesAreAnError) {
  std::string bytes = encode_jpeg(slope(kWidth, kHeight, 90), kWidth, kHeight);
  const size_t frame = bytes.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) bytes[frame + i] = '\x7F';  // 32639 x 32639
  EXPECT_EQ(jpeg_message(bytes),
            "x.jpg: not a JPEG image that can be read: the image is too large");
}

TEST(Jpeg, MutatedImagesAreReadOrRefused) {
  Mutator mutate;
  const std::string inputs[] = {
      encode_jpeg(slope(kWidth, kHeight, 90), kWidth, kHeight),
      encode_jpeg(slope(kWidth, kHeight, 90), kWidth, kHeight, {JCS_RGB, JCS_YCbCr, true})};
  int refused = 0;
  for (int i = 0; i < 2000; ++i) refused += jpeg_message(mutate(inputs[i % 2])) != "no error";
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 2000);
}

}  // namespace
}  // namespace hdetach
#endif
