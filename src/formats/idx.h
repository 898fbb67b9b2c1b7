// IDX, the format of the MNIST files: a magic number with the type and the number of dimensions,
// the dimensions as big-endian 32-bit numbers, then the bytes. Only unsigned bytes are read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace hdetach::idx {

struct Array {
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
};

// "train-images-idx3-ubyte: byte 4: what is wrong"
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `name` stands in the messages. Any bytes are safe: a wrong magic number, a header that promises
// more or fewer bytes than there are, or a product of dimensions that overflows throws Error.
Array parse(const std::string& bytes, const std::string& name, int dimensions);

}  // namespace hdetach::idx
