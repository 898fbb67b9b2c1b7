// The product of two shared memory tiles on the tensor cores, float32 in and float32 error out.
// What the GEMMs and the step kernels have in common.
//
// Strategy: tiles stay float32 in shared memory and are split in two tf32 in registers. Tensor
// cores add by truncation, so nothing is accumulated there: every 8 of k the two small products
// come first, the large one last, and the sum of the three joins the float32 accumulator by an
// ordinary add. One truncation of an 8 term sum is half a unit of the last place.
//
// Limits: tiles are kTileK deep; k beyond the matrix is zero filled by the copies.
//
// Two shapes of tile, by what lies contiguous in device memory:
//   AlongK   a line per row (or column) of the matrix, kTileK floats of k each
//   AcrossK  a line per k, `width` rows (or columns) each
// Within 8 of k thread quad q takes k = 2q and 2q + 1 for both operands: the tensor core sums over
// k in any order, and so both shapes are read in vectors and without bank conflicts.
#pragma once

#include <cstdint>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/mma.cuh"

namespace hdetach::cuda {

constexpr int kTileK = 32;

// Four floats of a line, `valid` of them (0 to 4) from memory and the others zero. `aligned`: all
// such quads start at 16 bytes and are whole or absent.
__device__ __forceinline__ void copy_quad(float* to, const float* from, int valid, bool aligned) {
  if (aligned) {
    copy_async<16>(to, from, valid > 0);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) copy_async<4>(to + i, i < valid ? from + i : from, i < valid);
}

// What an operand's fragments of one k8 step hold, before the split: kTiles tiles of 16 rows (A,
// two rows a thread) or of 8 columns (B, one column a thread).
template <int kTiles>
struct FragmentsA {
  float value[kTiles][4];
};
template <int kTiles>
struct FragmentsB {
  float value[kTiles][2];
};

template <int kLines>
struct AlongK {
  static constexpr int kFloats = kLines * kTileK;
  static constexpr bool kNeighbouringRows = false;

  // Quads are swapped between lines so that four neighbouring lines occupy all banks.
  static __device__ __forceinline__ int at(int line, int k) {
    return line * kTileK + ((((k >> 2) ^ ((line & 3) << 1)) << 2) | (k & 3));
  }

  // source(line) is where the line starts, at k = 0, or null for zeros; `any` is a valid address.
  template <int kThreads, typename Source>
  static __device__ __forceinline__ void fill(float* tile, int thread, int k_first, int k_end,
                                              bool aligned, const float* any,
                                              const Source& source) {
#pragma unroll
    for (int n = 0; n < kLines * (kTileK / 4); n += kThreads) {
      const int i = n + thread;
      if (n + kThreads > kLines * (kTileK / 4) && i >= kLines * (kTileK / 4)) break;
      const int line = i / (kTileK / 4), quad = i % (kTileK / 4), k = k_first + 4 * quad;
      const float* from = source(line);
      const int valid = from == nullptr ? 0 : k_end - k;
      copy_quad(tile + at(line, 4 * quad), valid > 0 ? from + k : any, valid, aligned);
    }
  }

  // Rows first_row .. first_row + 16 kTiles of k8 step `step`.
  template <int kTiles>
  static __device__ __forceinline__ FragmentsA<kTiles> rows(const float* tile, int first_row,
                                                            int step, int lane) {
    FragmentsA<kTiles> out;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int line = first_row + row(i, half, lane);
        const float2 v = *reinterpret_cast<const float2*>(tile + at(line, 8 * step + lane % 4 * 2));
        out.value[i][half] = v.x;
        out.value[i][2 + half] = v.y;
      }
    }
    return out;
  }

  template <int kTiles>
  static __device__ __forceinline__ FragmentsB<kTiles> columns(const float* tile, int first_column,
                                                               int step, int lane) {
    FragmentsB<kTiles> out;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const int line = first_column + 8 * j + lane / 4;
      const float2 v = *reinterpret_cast<const float2*>(tile + at(line, 8 * step + lane % 4 * 2));
      out.value[j][0] = v.x;
      out.value[j][1] = v.y;
    }
    return out;
  }

  // Where the accumulators of tile (i, j) belong: element 2 * half + e is at row(i, half) and
  // column(j, e), relative to the warp's first.
  static __device__ __forceinline__ int row(int i, int half, int lane) {
    return 16 * i + 8 * half + lane / 4;
  }
  template <int kTiles>
  static __device__ __forceinline__ int column(int j, int e, int lane) {
    return 8 * j + lane % 4 * 2 + e;
  }
};

template <int kWidth>
struct AcrossK {
  static_assert(kWidth % 16 == 0, "the stride below is free of bank conflicts for these");
  static constexpr int kStride = kWidth + 4;
  static constexpr int kFloats = kTileK * kStride;
  // row(0, 0), row(0, 1), row(1, 0) and row(1, 1) follow one another.
  static constexpr bool kNeighbouringRows = true;

  // source(k) is where the line of that k starts, or null for zeros; columns [first, end) are
  // valid.
  template <int kThreads, typename Source>
  static __device__ __forceinline__ void fill(float* tile, int thread, int first, int end,
                                              bool aligned, const float* any,
                                              const Source& source) {
#pragma unroll
    for (int n = 0; n < kTileK * (kWidth / 4); n += kThreads) {
      const int i = n + thread;
      if (n + kThreads > kTileK * (kWidth / 4) && i >= kTileK * (kWidth / 4)) break;
      const int line = i / (kWidth / 4), quad = i % (kWidth / 4), column = first + 4 * quad;
      const float* from = source(line);
      const int valid = from == nullptr ? 0 : end - column;
      copy_quad(tile + line * kStride + 4 * quad, valid > 0 ? from + column : any, valid, aligned);
    }
  }

  // A thread reads four neighbours of a line at once, which are its rows in two tiles.
  template <int kTiles>
  static __device__ __forceinline__ FragmentsA<kTiles> rows(const float* tile, int first_row,
                                                            int step, int lane) {
    static_assert(kTiles % 2 == 0, "rows come in groups of 32");
    FragmentsA<kTiles> out;
    const float* from = tile + (8 * step + lane % 4 * 2) * kStride + first_row + lane / 4 * 4;
#pragma unroll
    for (int i = 0; i < kTiles; i += 2) {
      const float4 even = *reinterpret_cast<const float4*>(from + 16 * i);
      const float4 odd = *reinterpret_cast<const float4*>(from + 16 * i + kStride);
      const float values[2][4] = {{even.x, even.y, odd.x, odd.y}, {even.z, even.w, odd.z, odd.w}};
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        out.value[i][v] = values[0][v];
        out.value[i + 1][v] = values[1][v];
      }
    }
    return out;
  }

  // Four neighbours again, which are the thread's columns in four tiles. Fewer come one by one.
  template <int kTiles>
  static __device__ __forceinline__ FragmentsB<kTiles> columns(const float* tile, int first_column,
                                                               int step, int lane) {
    FragmentsB<kTiles> out;
    const float* from = tile + (8 * step + lane % 4 * 2) * kStride + first_column;
    if constexpr (kTiles % 4 == 0) {
#pragma unroll
      for (int j = 0; j < kTiles; j += 4) {
        const float4 even = *reinterpret_cast<const float4*>(from + 8 * j + lane / 4 * 4);
        const float4 odd = *reinterpret_cast<const float4*>(from + 8 * j + lane / 4 * 4 + kStride);
        const float values[2][4] = {{even.x, even.y, even.z, even.w}, {odd.x, odd.y, odd.z, odd.w}};
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          out.value[j + v][0] = values[0][v];
          out.value[j + v][1] = values[1][v];
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < kTiles; ++j) {
        out.value[j][0] = from[8 * j + lane / 4];
        out.value[j][1] = from[8 * j + lane / 4 + kStride];
      }
    }
    return out;
  }

  static __device__ __forceinline__ int row(int i, int half, int lane) {
    return 32 * (i / 2) + lane / 4 * 4 + 2 * (i % 2) + half;
  }
  template <int kTiles>
  static __device__ __forceinline__ int column(int j, int e, int lane) {
    if constexpr (kTiles % 4 != 0) return 8 * j + lane % 4 * 2 + e;
    return 32 * (j / 4) + (lane % 4 * 2 + e) * 4 + j % 4;
  }
};

template <int kTilesM, int kTilesN>
struct Accumulators {
  float value[kTilesM][kTilesN][4] = {};
};

// sum += a b over 8 of k.
template <int kTilesM, int kTilesN>
__device__ __forceinline__ void multiply_add(Accumulators<kTilesM, kTilesN>& sum,
                                             const FragmentsA<kTilesM>& a,
                                             const FragmentsB<kTilesN>& b) {
  uint32_t b_high[kTilesN][2], b_low[kTilesN][2];
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const Tf32Pair pair = split_tf32(b.value[j][v]);
      b_high[j][v] = pair.high;
      b_low[j][v] = pair.low;
    }
  }
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
    uint32_t a_high[4], a_low[4];
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const Tf32Pair pair = split_tf32(a.value[i][v]);
      a_high[v] = pair.high;
      a_low[v] = pair.low;
    }
    // One kind of product for all tiles, then the next: a tile's three depend on one another.
    float d[kTilesN][4] = {};
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) mma_tf32(d[j], a_low, b_high[j][0], b_high[j][1]);
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) mma_tf32(d[j], a_high, b_low[j][0], b_low[j][1]);
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) mma_tf32(d[j], a_high, b_high[j][0], b_high[j][1]);
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
      for (int v = 0; v < 4; ++v) sum.value[i][j][v] += d[j][v];
    }
  }
}

// Runs fill(stage, tile) kStages - 1 tiles ahead of compute(stage, tile), for tiles 0 .. count - 1.
// fill issues asynchronous copies and closes no group.
template <int kStages, typename Fill, typename Compute>
__device__ __forceinline__ void pipeline(int count, const Fill& fill, const Compute& compute) {
#pragma unroll 1
  for (int tile = 0; tile < kStages - 1; ++tile) {
    if (tile < count) fill(tile, tile);
    close_copy_group();
  }
#pragma unroll 1
  for (int tile = 0, stage = 0; tile < count; ++tile) {
    wait_copy_groups<kStages - 2>();
    __syncthreads();  // everybody's part of this tile is there, and the stage before it is free
    const int ahead = tile + kStages - 1;
    if (ahead < count) fill(stage == 0 ? kStages - 1 : stage - 1, ahead);
    close_copy_group();
    compute(stage, tile);
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  wait_copy_groups<0>();
  __syncthreads();  // the shared memory is free for other use
}

}  // namespace hdetach::cuda
