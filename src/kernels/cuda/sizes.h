// Helpers of several kernels' host side, and the limits of size that all CUDA kernels share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/kernel.h"

namespace hdetach::cuda {

// Parts of `part` that hold `total`.
inline int parts(int64_t total, int64_t part) {
  return static_cast<int>((total + part - 1) / part);
}

// Rows and columns of the part of a weight gradient that a block computes.
constexpr int kGradientTile = 128;

// Null, or why no CUDA kernel takes this shape (the reference does).
// The index t * B + b is an int, and loops run past T * B by at most a tile of 32 for each of 132
// blocks. A weight gradient has a block for each tile, along y of the grid.
inline const char* too_large(const LstmShape& s) {
  constexpr int64_t kMostRows = 2147475456, kMostAlongY = 65535;  // 2^31 - 8192
  if (s.steps * s.batch > kMostRows) return "T * B must be at most 2147475456";
  const auto tiles = [](int64_t numbers) { return (numbers + kGradientTile - 1) / kGradientTile; };
  if (std::max(tiles(s.hidden), tiles(s.input)) > kMostAlongY / tiles(4 * s.hidden)) {
    return "the weights are too large: 4H/128 * max(H, I)/128, both rounded up, must be at most "
           "65535";
  }
  return nullptr;
}

inline bool starts_at_16_bytes(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Of gates and gate gradients, [replicas, T, B, H, 4].
inline size_t gate_bytes(const LstmShape& s) {
  return static_cast<size_t>(s.replicas * s.steps * s.batch * s.hidden) * 4 * sizeof(float);
}

}  // namespace hdetach::cuda
