// Any bytes as a JPEG image: what is decoded has the size it says, and nothing is left undone.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/jpeg.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const hdetach::jpeg::Image image =
        hdetach::jpeg::decode({reinterpret_cast<const char*>(data), size}, "x");
    const int64_t pixels = image.width * image.height;
    if (pixels < 1 || pixels > hdetach::jpeg::kMostPixels) std::abort();
    if (static_cast<int64_t>(image.pixels.size()) != 3 * pixels) std::abort();
  } catch (const hdetach::jpeg::Error&) {
  }
  return 0;
}
