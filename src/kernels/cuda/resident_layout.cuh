// Who holds what in the resident kernels.
//
// A cluster of kCluster thread blocks owns four batch rows from the first step to the last: four
// cost as much as one. A warp owns 8 units, all four gates of them, and keeps its slice of w_hh as
// halves split in two: most tiles in registers, the rest, for wide layers, in shared memory. In the
// fragments of mma.cuh, thread (group, quad) of a warp then holds
//   unit `group` of the warp's 8, as rows group and group + 8,
//   batch row `quad`: column 2*quad is the high half of its operand, 2*quad + 1 the low half, so
//   their sum is the product, in one thread, without a shuffle.
#pragma once

#include <cstdint>

#include "kernels/cuda/mma.cuh"

namespace hdetach::cuda {

constexpr int kUnits = 8;       // of a warp
constexpr int kRows = 4;        // of a cluster
constexpr int kTileWords = 64;  // of an operand's k tile: 16 k x 4 rows x (high, low) halves
constexpr uint32_t kAllLanes = 0xffffffffu;

template <int kKTiles_, int kWarps_, int kCluster_>
struct Layout {
  static constexpr int kKTiles = kKTiles_;    // of 16 units: all of them
  static constexpr int kWarps = kWarps_;      // of a block
  static constexpr int kCluster = kCluster_;  // blocks
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kAllWarps = kWarps * kCluster;
  static_assert(kAllWarps * kUnits >= kKTiles * 16, "every unit has its warp");
  static_assert(kCluster > 1, "st.async is illegal outside a cluster");
  // Of an SM's 228 KB, a block of at most 128 threads leaves room for a second: their registers
  // fit, and the two, which do not wait for each other, fill each other's gaps.
  static constexpr int kSharedLimit = (kWarps <= 4 && kKTiles <= 8 ? 112 : 226) * 1024;
};

// Where a thread stands.
template <class L>
struct Place {
  int lane, group, quad;
  int warp, rank;  // of the block, of the block in its cluster
  int unit, row, replica;
  bool unit_there, row_there, there;  // not padding
  int64_t line;                       // row among those of all replicas: of h0, c0, lengths
  int64_t where;  // of (row, unit) at step 0 in [replicas, T, B, H]; where it is padding, 0

  __device__ explicit Place(const LstmShape& shape) {
    lane = threadIdx.x % 32;
    group = lane / 4;
    quad = lane % 4;
    warp = threadIdx.x / 32;
    rank = blockIdx.x % L::kCluster;
    unit = (rank * L::kWarps + warp) * kUnits + group;
    const int batch = shape.batch, hidden = shape.hidden;
    const int clusters = (batch + kRows - 1) / kRows, cluster = blockIdx.x / L::kCluster;
    replica = cluster / clusters;
    row = cluster % clusters * kRows + quad;
    unit_there = unit < hidden;
    row_there = row < batch;
    there = unit_there && row_there;
    line = static_cast<int64_t>(replica) * batch + row;
    where = there ? (replica * shape.steps * batch + row) * hidden + unit : 0;
  }
};

constexpr uint32_t kHalfPower = 14;  // the largest number of a kind is scaled to 2^14 .. 2^15

__device__ __forceinline__ float most_of_row(float x) {  // over the lanes of one quad
#pragma unroll
  for (int lanes = 4; lanes < 32; lanes *= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lanes));
  }
  return x;
}

// One power of two for the rows of w_hh that belong to the block's units, found by all its threads.
template <class L>
__device__ float scale_of_rows(const float* w_hh, int rank, int hidden) {
  __shared__ int most_bits;
  if (threadIdx.x == 0) most_bits = 0;
  const int first = rank * L::kWarps * kUnits;
  const int rows = max(0, min(L::kWarps * kUnits, hidden - first)), size = rows * hidden;
  const bool wide = hidden % 4 == 0 && reinterpret_cast<uintptr_t>(w_hh) % 16 == 0;
  float most = 0;
  for (int gate = 0; gate < 4; ++gate) {
    const float* const from = w_hh + static_cast<int64_t>(gate * hidden + first) * hidden;
    if (wide) {
      // Many loads under way at once: one after the other would take longer than a hundred steps.
#pragma unroll 8
      for (int i = threadIdx.x; i < size / 4; i += L::kThreads) {
        const float4 w = reinterpret_cast<const float4*>(from)[i];
        most = fmaxf(most, fmaxf(fmaxf(fabsf(w.x), fabsf(w.y)), fmaxf(fabsf(w.z), fabsf(w.w))));
      }
    } else {
#pragma unroll 8
      for (int i = threadIdx.x; i < size; i += L::kThreads) most = fmaxf(most, fabsf(from[i]));
    }
  }
  __syncthreads();
  atomicMax(&most_bits, __float_as_int(most));  // the bits of floats above zero keep their order
  __syncthreads();
  return scale_to_power(__int_as_float(most_bits), kHalfPower);
}

// The fragments of a warp's slice of w_hh: kTiles tiles of 4 registers. The first kKept are in
// registers, the rest in shared memory.
template <int kTiles, int kKept>
struct Fragments {
  static constexpr int kShared = kTiles - kKept;  // of 16 bytes a thread

  uint32_t kept[kKept][4];
  uint4* shared;  // [kShared][threads], this thread's column
  int stride;     // threads

  // d += tile times an operand's tile. `tile` is a constant once the loops are unrolled.
  __device__ __forceinline__ void multiply(float (&d)[4], int tile, const uint32_t (&b)[2]) const {
    if (tile < kKept) {
      mma_f16(d, kept[tile < kKept ? tile : 0], b[0], b[1]);
    } else {
      const uint4 w = shared[(tile - kKept) * stride];
      const uint32_t a[4] = {w.x, w.y, w.z, w.w};
      mma_f16(d, a, b[0], b[1]);
    }
  }

  // tile(index, a) fills a[4]; called once for each.
  template <class Tile>
  __device__ void fill(uint4* column, int threads, const Tile& tile) {
    shared = column;
    stride = threads;
#pragma unroll
    for (int i = 0; i < kKept; ++i) tile(i, kept[i]);
#pragma unroll 1
    for (int i = kKept; i < kTiles; ++i) {
      uint32_t a[4];
      tile(i, a);
      shared[(i - kKept) * stride] = make_uint4(a[0], a[1], a[2], a[3]);
    }
  }
};
constexpr int kMostKept = 44;  // tiles: more would leave too few registers for the sums

}  // namespace hdetach::cuda
