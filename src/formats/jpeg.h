// JPEG images by libjpeg, as rows of red, green and blue. Grey and CMYK images become RGB; the
// orientation that a camera notes beside the image is not applied, as image networks are trained.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hdetach::jpeg {

constexpr int64_t kMostPixels = int64_t{1} << 26;  // more is no photograph but an attack

struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

// "cat.jpg: what is wrong"
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `name` stands in the messages. Any bytes are safe: what is not a whole JPEG image throws Error,
// also where libjpeg would make up what is missing. A build without libjpeg throws
// std::runtime_error.
Image decode(std::string_view bytes, const std::string& name);

}  // namespace hdetach::jpeg
