// Gzipped files: read whole, within a limit, or refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#ifdef HDETACH_WITH_ZLIB
#include <zlib.h>
#endif

#include "formats/files.h"
#include "tests/error_text.h"
#include "tests/mutate.h"
#include "tests/temporary_folder.h"

namespace {

namespace files = hdetach::files;
namespace fs = std::filesystem;
using Gzip = hdetach::FilesFolder;
using hdetach::test::error_text;

TEST_F(Gzip, ReadGzipBoundsPlainFilesToo) {
  const fs::path path = put("x", "12345");
  EXPECT_EQ(files::read_gzip(path, 5), "12345");
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(path, 4); }),
            "DIR/x: has more than 4 bytes");
  if (!fs::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero";
  EXPECT_EQ(error_text(folder_, [] { files::read_gzip("/dev/zero", 1000); }),
            "/dev/zero: has more than 1000 bytes");
}

#ifdef HDETACH_WITH_ZLIB
std::string gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(Gzip, UnpacksGzip) {
  std::string bytes(300000, '\0');
  uint32_t noise = 1;
  for (char& byte : bytes) byte = static_cast<char>((noise = noise * 1664525 + 1013904223) >> 24);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, bytes.size()}) {
    const std::string content = bytes.substr(0, size);
    EXPECT_TRUE(files::read_gzip(put("x", gzip(content)), size) == content) << size;
  }
}

TEST_F(Gzip, UnpacksJoinedGzip) {
  const fs::path path = put("x", gzip("one ") + gzip("") + gzip("two"));
  EXPECT_EQ(files::read_gzip(path, 7), "one two");
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(path, 6); }),
            "DIR/x: unpacks to more than 6 bytes");
}

TEST_F(Gzip, RefusesAGzipBomb) {
  const fs::path path = put("x", gzip(std::string(50'000'000, '\0')));
  EXPECT_LT(fs::file_size(path), 60000u);
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(path, 1'000'000); }),
            "DIR/x: unpacks to more than 1000000 bytes");
}

TEST_F(Gzip, RefusesATruncatedGzip) {
  const std::string whole = gzip("some content that is long enough");
  for (size_t size = 2; size < whole.size(); ++size) {
    const fs::path path = put("x", whole.substr(0, size));
    EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(path, 100); }),
              "DIR/x: byte " + std::to_string(size) + ": the gzip file ends early; fetch it again");
  }
}

TEST_F(Gzip, RefusesADamagedGzip) {
  std::string bytes = gzip("some content");
  const std::string good = bytes;
  bytes[bytes.size() - 6] ^= 1;  // in the checksum
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(put("x", bytes), 100); }),
            "DIR/x: byte " + std::to_string(bytes.size() - 4) +
                ": the gzip file is damaged (incorrect data check); fetch it again");
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(put("x", good + "garbage"), 100); }),
            "DIR/x: byte " + std::to_string(good.size() + 2) +
                ": the gzip file is damaged (incorrect header check); fetch it again");
}

TEST_F(Gzip, DamagedGzipIsReadOrRefused) {
  const std::string good = gzip("some content that is long enough, some content") + gzip("more");
  hdetach::Mutator mutate;
  int read = 0, refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const fs::path path = put("x", mutate(good));
    const std::string what = error_text(folder_, [&] { files::read_gzip(path, 1000); });
    const bool is_read = what == "no error";
    EXPECT_TRUE(is_read || what.rfind("DIR/x: ", 0) == 0) << what;
    ++(is_read ? read : refused);
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 500);
}
#else
TEST_F(Gzip, WithoutZlibAGzipFileSaysWhatToDo) {
  const fs::path path = put("x", "\x1F\x8B\x08");
  EXPECT_EQ(error_text(folder_, [&] { files::read_gzip(path, 100); }),
            "DIR/x: the file is gzipped and this build has no zlib; run gunzip on it, or install "
            "zlib1g-dev and build again");
}
#endif

}  // namespace
