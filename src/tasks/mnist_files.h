// The four files of MNIST: handwritten digits and their labels, as IDX, plain or gzipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace hdetach {

struct MnistData {
  int64_t rows = 0, columns = 0;  // pixels of an image
  std::vector<uint8_t> images;    // [size, rows * columns], 0 is background
  std::vector<uint8_t> labels;    // [size], 0 to 9

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

struct MnistFiles {
  MnistData train, test;
};

// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
// t10k-labels-idx1-ubyte, or these names with .gz. Throws std::runtime_error, or idx::Error which
// is one, with the file and the byte where something is wrong.
MnistFiles read_mnist(const std::filesystem::path& folder);

}  // namespace hdetach
