#include "formats/idx.h"

#include <cstddef>

namespace hdetach::idx {
namespace {

constexpr unsigned kUnsignedByte = 0x08;

std::string product(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

Array parse(const std::string& bytes, const std::string& name, int dimensions) {
  const auto fail = [&name](size_t offset, const std::string& what) {
    throw Error(name + ": byte " + std::to_string(offset) + ": " + what);
  };
  const auto byte = [&bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.empty()) fail(0, "the file is empty");
  if (bytes.size() < 4) {
    fail(bytes.size(), "the file ends inside the magic number, which has 4 bytes");
  }
  if (byte(0) != 0 || byte(1) != 0)
    fail(0, "this is not an IDX file: it must start with two zeros");
  if (byte(2) != kUnsignedByte) {
    fail(2, "type " + std::to_string(byte(2)) + ", but only type 8, unsigned bytes, is read");
  }
  if (byte(3) != dimensions) {
    fail(3, "the array has " + std::to_string(byte(3)) + " dimensions, expected " +
                std::to_string(dimensions));
  }
  const size_t header = 4 + 4 * static_cast<size_t>(dimensions);
  if (bytes.size() < header) {
    fail(bytes.size(),
         "the file ends inside the header, which has " + std::to_string(header) + " bytes");
  }
  Array array;
  int64_t count = 1;
  for (size_t at = 4; at < header; at += 4) {
    const int64_t size = int64_t{byte(at)} << 24 | int64_t{byte(at + 1)} << 16 |
                         int64_t{byte(at + 2)} << 8 | int64_t{byte(at + 3)};
    array.shape.push_back(size);
    if (__builtin_mul_overflow(count, size, &count)) {
      fail(at, "the dimensions " + product(array.shape) + " are more bytes than a file can have");
    }
  }
  const size_t promised = static_cast<size_t>(count), present = bytes.size() - header;
  const std::string what = "array of " + product(array.shape) + " bytes";
  if (present < promised) {
    fail(bytes.size(), "the file ends here, " + std::to_string(promised - present) +
                           " bytes before the end of its " + what);
  }
  if (present > promised) {
    fail(header + promised,
         "the " + what + " ends here, but " + std::to_string(present - promised) + " bytes follow");
  }
  array.data.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return array;
}

}  // namespace hdetach::idx
