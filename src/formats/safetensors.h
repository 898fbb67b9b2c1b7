// safetensors: named arrays and a map of strings in one file, as the Python package reads and
// writes it. Eight bytes of header size, a JSON header, then the arrays, little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hdetach::safetensors {

using Metadata = std::map<std::string, std::string>;

// An array to be written; `data` is borrowed.
struct View {
  std::string name;
  std::string dtype;           // "F32", "F64", "I64", "U8", ... as the format spells them
  std::vector<int64_t> shape;  // empty means a scalar
  const void* data;
};

// An array that was read.
struct Array {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  const char* data;  // into the file's bytes, aligned to the type where the file was written by us
  size_t size;       // bytes
};

// What the header says, checked against the size of the file.
struct Contents {
  Metadata metadata;
  std::vector<Array> arrays;  // in the order of their bytes

  const Array* find(const std::string& name) const;  // null when there is none
};

// Contents that own their bytes.
struct File : Contents {
  std::string bytes;  // the whole file; moved, not copied, so that Array::data stays valid

  // A copy would point into the original.
  File() = default;
  File(File&&) = default;
  File& operator=(File&&) = default;
};

// "best.safetensors: byte 12: what is wrong"
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string serialize(const std::vector<View>& arrays, const Metadata& metadata);

// What serialize() begins with, for a file that grows piece by piece: the arrays follow without a
// gap, those of larger elements first. Their data are not looked at.
std::string serialize_header(const std::vector<View>& arrays, const Metadata& metadata);

// `name` stands in the messages. Any bytes are safe: a header that lies about its size, offsets
// that overlap, leave holes or leave the file, shapes that do not match the bytes, and unknown
// types throw Error.
File parse(std::string bytes, const std::string& name);

// parse() of bytes that stay where they are (a mapped file, say) and outlive what is returned. Only
// the header is looked at.
Contents read_header(std::string_view bytes, const std::string& name);

}  // namespace hdetach::safetensors
