// Small sums that the host side of several kernels does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel.h"

namespace hdetach::cuda {

// Parts of `part` that hold `total`.
inline int parts(int64_t total, int64_t part) {
  return static_cast<int>((total + part - 1) / part);
}

inline bool starts_at_16_bytes(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Of gates and gate gradients, [replicas, T, B, H, 4].
inline size_t gate_bytes(const LstmShape& s) {
  return static_cast<size_t>(s.replicas * s.steps * s.batch * s.hidden) * 4 * sizeof(float);
}

}  // namespace hdetach::cuda
