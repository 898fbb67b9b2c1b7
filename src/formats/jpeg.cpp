#include "formats/jpeg.h"

#ifdef HDETACH_WITH_JPEG
#include <csetjmp>
#include <cstddef>
#include <cstdio>

// These two need what <cstdio> and <cstddef> declare.
#include <jerror.h>
#include <jpeglib.h>
#endif

namespace hdetach::jpeg {

#ifdef HDETACH_WITH_JPEG
namespace {

constexpr int kMostScans = 200;  // encoders write about ten; each one costs a pass over the image

// libjpeg ends the process on an error unless it is made to jump out. Nothing between setjmp and
// the jump may have a destructor: all that has one is a member here, and the steps are functions
// that only call libjpeg.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {
    cinfo_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr cinfo) { of(cinfo).jump(); };
    errors_.emit_message = [](j_common_ptr cinfo, int level) {
      // Negative means that the data are not as they should be. Bytes too many, and headers of
      // another program, lose no pixel.
      const int code = cinfo->err->msg_code;
      const bool harmless = level >= 0 || code == JWRN_EXTRANEOUS_DATA ||
                            code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
      if (!harmless) of(cinfo).jump();
    };
    cinfo_.client_data = this;
    progress_.progress_monitor = [](j_common_ptr cinfo) {
      if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number <= kMostScans) return;
      of(cinfo).problem_ = "the image is in more than 200 scans";
      std::longjmp(of(cinfo).back_, 1);
    };
  }
  ~Decoder() { jpeg_destroy_decompress(&cinfo_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // False where it failed, and problem() says why.
  bool start() {
    if (setjmp(back_) != 0) return false;
    jpeg_create_decompress(&cinfo_);
    cinfo_.progress = &progress_;
    jpeg_mem_src(&cinfo_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&cinfo_, TRUE);
    if (width() * height() > kMostPixels) {
      problem_ = "the image is too large";
      return false;
    }
    // libjpeg makes RGB of every colour space but those of printers.
    is_cmyk_ = cinfo_.jpeg_color_space == JCS_CMYK || cinfo_.jpeg_color_space == JCS_YCCK;
    cinfo_.out_color_space = is_cmyk_ ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&cinfo_);
    return true;
  }

  bool read_row(unsigned char* row) {
    if (setjmp(back_) != 0) return false;
    jpeg_read_scanlines(&cinfo_, &row, 1);
    return true;
  }

  bool finish() {
    if (setjmp(back_) != 0) return false;
    jpeg_finish_decompress(&cinfo_);
    return true;
  }

  int64_t width() const { return cinfo_.image_width; }
  int64_t height() const { return cinfo_.image_height; }
  bool is_cmyk() const { return is_cmyk_; }
  bool is_inverted() const { return cinfo_.saw_Adobe_marker != 0; }  // Adobe writes 255 for no ink
  const char* problem() const { return problem_; }

 private:
  static Decoder& of(j_common_ptr cinfo) { return *static_cast<Decoder*>(cinfo->client_data); }

  [[noreturn]] void jump() {
    errors_.format_message(reinterpret_cast<j_common_ptr>(&cinfo_), message_);
    problem_ = message_;
    std::longjmp(back_, 1);
  }

  std::string_view bytes_;
  jpeg_decompress_struct cinfo_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_{};
  bool is_cmyk_ = false;
  const char* problem_ = "";
  char message_[JMSG_LENGTH_MAX] = "";
};

void rgb_of_cmyk(const std::vector<uint8_t>& row, bool is_inverted, uint8_t* to) {
  const int flip = is_inverted ? 0 : 255;
  for (size_t i = 0; i < row.size(); i += 4) {
    const int no_black = row[i + 3] ^ flip;
    for (size_t colour = 0; colour < 3; ++colour) {
      *to++ = static_cast<uint8_t>(((row[i + colour] ^ flip) * no_black + 127) / 255);
    }
  }
}

}  // namespace

Image decode(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) throw Error(name + ": the file is empty");
  Decoder decoder(bytes);
  const auto check = [&](bool succeeded) {
    if (!succeeded) {
      throw Error(name + ": not a JPEG image that can be read: " + decoder.problem());
    }
  };
  check(decoder.start());
  Image image{decoder.width(), decoder.height(), {}};
  image.pixels.resize(image.width * image.height * 3);
  std::vector<uint8_t> inks(decoder.is_cmyk() ? image.width * 4 : 0);
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* const row = image.pixels.data() + y * image.width * 3;
    check(decoder.read_row(decoder.is_cmyk() ? inks.data() : row));
    if (decoder.is_cmyk()) rgb_of_cmyk(inks, decoder.is_inverted(), row);
  }
  check(decoder.finish());
  return image;
}
#else
Image decode(std::string_view, const std::string& name) {
  throw std::runtime_error(
      name +
      ": this build has no libjpeg; install libjpeg-dev (or your system's name for it) and "
      "build again");
}
#endif

}  // namespace hdetach::jpeg
