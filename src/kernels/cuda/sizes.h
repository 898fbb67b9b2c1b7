// Small sums that the host side of several kernels does, and the sizes that none of them takes.
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

// A block's part of a weight gradient: so many rows and columns.
constexpr int kGradientTile = 128;

// Null, or why no CUDA kernel takes this shape; the reference does. A step and row are one index,
// an int, to which a block's part of a sum is added; the tiles of a weight gradient lie along y.
inline const char* too_large(const LstmShape& s) {
  constexpr int64_t kMostRows = 2147475456, kMostAlongY = 65535;
  if (s.steps * s.batch > kMostRows) return "T times B may be at most 2147475456";
  const auto tiles = [](int64_t numbers) { return (numbers + kGradientTile - 1) / kGradientTile; };
  if (std::max(tiles(s.hidden), tiles(s.input)) > kMostAlongY / tiles(4 * s.hidden)) {
    return "its weights are too many: 4H/128 times H/128 or I/128, rounded up, may be at most "
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
