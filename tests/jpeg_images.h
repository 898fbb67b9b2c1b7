// JPEG images made by libjpeg, for the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Needs what <cstdio> and <cstddef> declare.
#include <jpeglib.h>

namespace hdetach {

struct JpegKind {
  J_COLOR_SPACE pixels = JCS_RGB;  // of what is given: JCS_RGB, JCS_GRAYSCALE or JCS_CMYK
  J_COLOR_SPACE stored = JCS_YCbCr;
  bool progressive = false;
};

// `pixels` are [height, width, colours].
inline std::string encode_jpeg(const std::vector<uint8_t>& pixels, int width, int height,
                               const JpegKind& kind = {}) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &bytes, &size);
  cinfo.image_width = static_cast<JDIMENSION>(width);
  cinfo.image_height = static_cast<JDIMENSION>(height);
  cinfo.input_components =
      static_cast<int>(pixels.size() / (static_cast<size_t>(width) * static_cast<size_t>(height)));
  cinfo.in_color_space = kind.pixels;
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, kind.stored);
  jpeg_set_quality(&cinfo, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&cinfo);
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < cinfo.image_height) {
    auto* row =
        const_cast<unsigned char*>(pixels.data() + size_t{cinfo.next_scanline} * cinfo.image_width *
                                                       static_cast<size_t>(cinfo.input_components));
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  const std::string result(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&cinfo);
  std::free(bytes);
  return result;
}

// Red grows to the right, green downwards, and `blue` is everywhere the same.
inline std::vector<uint8_t> slope(int width, int height, uint8_t blue) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      pixels.push_back(static_cast<uint8_t>(255 * x / width));
      pixels.push_back(static_cast<uint8_t>(255 * y / height));
      pixels.push_back(blue);
    }
  }
  return pixels;
}

}  // namespace hdetach
