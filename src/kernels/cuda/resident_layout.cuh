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

// The rows of w_hh that belong to a block's units, on their way from device memory to fragments:
// rows are read whole there, and in any order here. Padding is zero.
template <class L>
struct BlockRows {
  static constexpr int kUnitsHere = L::kWarps * kUnits, kColumns = 16 * L::kKTiles;
  static constexpr int kStride = (kColumns + 31) / 32 * 32 + 8;  // both sweeps then read all banks
  float weight[4][kUnitsHere][kStride];                          // of gate, unit, column

  // By all threads; returns the power of two that scales the rows to halves.
  __device__ float load(const float* w_hh, int rank, int hidden) {
    __shared__ int most_bits;
    if (threadIdx.x == 0) most_bits = 0;
    const int first = rank * kUnitsHere;
    const bool wide = hidden % 4 == 0 && reinterpret_cast<uintptr_t>(w_hh) % 16 == 0;
    const float most = wide ? copy<true>(w_hh, first, hidden) : copy<false>(w_hh, first, hidden);
    __syncthreads();
    atomicMax(&most_bits, __float_as_int(most));  // the bits of floats above zero keep their order
    __syncthreads();
    return scale_to_power(__int_as_float(most_bits), kHalfPower);
  }

 private:
  // Returns the largest magnitude that the thread met. kWide: lines start at 16 bytes.
  template <bool kWide>
  __device__ float copy(const float* w_hh, int first, int hidden) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float most = 0;
#pragma unroll 1
    for (int gates = 0; gates < 4; gates += 2) {
#pragma unroll
      for (int pass = 0; pass < (kColumns + 127) / 128; ++pass) {
        const int column = 128 * pass + 4 * lane;
        const float* const from =
            w_hh + static_cast<int64_t>(gates * hidden + first + warp) * hidden + column;
        // Sixteen loads are under way at once: one after the other would take longer than a
        // hundred steps.
        float4 w[2][kUnits];
#pragma unroll
        for (int i = 0; i < 2 * kUnits; ++i) {
          const int gate = i / kUnits, apart = i % kUnits * L::kWarps;
          const float* const line = from + (gate * hidden + apart) * hidden;
          const int valid = first + warp + apart < hidden ? hidden - column : 0;
          float4& to = w[gate][i % kUnits];
          to = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
          if constexpr (kWide) {
            if (valid > 0) to = __ldg(reinterpret_cast<const float4*>(line));
          } else {
            if (valid > 0) to.x = __ldg(line);
            if (valid > 1) to.y = __ldg(line + 1);
            if (valid > 2) to.z = __ldg(line + 2);
            if (valid > 3) to.w = __ldg(line + 3);
          }
        }
        if (column >= kColumns) continue;
#pragma unroll
        for (int i = 0; i < 2 * kUnits; ++i) {
          const int gate = i / kUnits, unit = i % kUnits;
          const float4& v = w[gate][unit];
          *reinterpret_cast<float4*>(&weight[gates + gate][warp + unit * L::kWarps][column]) = v;
          most = fmaxf(most, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
        }
      }
    }
    return most;
  }
};

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
