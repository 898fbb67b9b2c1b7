// What the products of weight_gradients.cu have in common, and the one with many inputs. A block
// takes a tile of the result and a part of the sum over T B, and leaves its sum in the workspace.
#pragma once

#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/sizes.h"

namespace hdetach::cuda {

constexpr int kGradientThreads = 256;
constexpr int kFusedInput = 15;  // up to here the inputs are extra columns beside the one

// How a weight gradient is cut up. A function of the sizes alone, replicas apart, so that bits are.
struct GradientPlan {
  int columns;       // of the main product: H or I
  int extra;         // columns beside it
  int part_columns;  // of a part in the workspace
  int row_tiles, column_tiles;
  int splits, split_k;  // the sum over T B in `splits` runs of `split_k`
};

// A block's tile of the result and part of the sum.
struct BlockShare {
  int first_row, first_column, k_begin, k_end;

  __device__ BlockShare(const GradientPlan& plan, int sum)
      : first_row(blockIdx.y % plan.row_tiles * kGradientTile),
        first_column(blockIdx.y / plan.row_tiles * kGradientTile),
        k_begin(blockIdx.x * plan.split_k),
        k_end(min(sum, k_begin + plan.split_k)) {}
  __device__ int tiles() const { return (k_end - k_begin + kTileK - 1) / kTileK; }
};

struct WeightProduct {
  const float* dgates;     // [R, T B, 4H]
  const float* h;          // [R, T, B, H]
  const float* h0;         // [R, B, H] or null
  const float* x;          // [R, T, B, I]
  const int64_t* lengths;  // [R, B] or null
  float* partial;          // [R, splits, 4H, part_columns]
  float* direct;           // [R, 4H, columns]: the result, where it has one part; else null
  int sum, batch, hidden, input;
  bool aligned;  // the lines of the main operand start at 16 bytes
  GradientPlan plan;

  // The block's replica is blockIdx.z, its part of the sum blockIdx.x. What is read all the time is
  // moved there once, the rest on its way: registers are short.
  __device__ void move_to_replica() {
    const int64_t replica = blockIdx.z;
    dgates += replica * sum * 4 * hidden;
    h += replica * sum * hidden;
    if (h0 != nullptr) h0 += replica * batch * hidden;
  }
  // h[t-1] of the pair k = (t, b).
  __device__ const float* h_line(int k) const {
    if (k >= batch) return h + static_cast<int64_t>(k - batch) * hidden;
    return h0 == nullptr ? nullptr : h0 + static_cast<int64_t>(k) * hidden;
  }
  // x[t], null past the row's length: padding may hold NaN, and 0 * NaN is not 0.
  __device__ const float* x_line(int k) const {
    const int64_t replica = blockIdx.z;
    if (lengths != nullptr && k / batch >= lengths[replica * batch + k % batch]) return nullptr;
    return x + (replica * sum + k) * input;
  }
  __device__ float* part() const {
    const int64_t index = static_cast<int64_t>(blockIdx.z) * plan.splits + blockIdx.x;
    return partial + index * 4 * hidden * plan.part_columns;
  }
  // Row m of the part, or of the result, which is in torch's row order.
  __device__ float* part_row(int m) const {
    if (direct == nullptr) return part() + static_cast<int64_t>(m) * plan.part_columns;
    const int64_t row = static_cast<int64_t>(blockIdx.z) * 4 * hidden + m % 4 * hidden + m / 4;
    return direct + row * plan.part_columns;
  }
};

// Gate gradients times inputs that are too many to be extra columns, by tf32: inputs may differ by
// any factor. 8 warps of 64 x 32.
namespace input_weights {

constexpr int kStages = 4;
using Tile = AcrossK<kGradientTile>;
constexpr int kBytes = kStages * 2 * Tile::kFloats * static_cast<int>(sizeof(float));

static __global__ void __launch_bounds__(kGradientThreads, 1) multiply(WeightProduct p) {
  extern __shared__ float4 shared[];
  float* stages = reinterpret_cast<float*>(shared);
  constexpr int kStage = 2 * Tile::kFloats;
  p.move_to_replica();
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const BlockShare share(p.plan, p.sum);
  const int rows = 4 * p.hidden, k_end = share.k_end;
  const int warp_row = warp % 2 * 64, warp_column = warp / 2 * 32;
  Accumulators<4, 4> sum;
  pipeline<kStages>(
      share.tiles(),
      [&](int stage, int tile) {
        float* row_tile = stages + stage * kStage;
        const int first_k = share.k_begin + tile * kTileK;
        Tile::fill<kGradientThreads>(
            row_tile, thread, share.first_row, rows, true, p.dgates, [&](int line) {
              const int k = first_k + line;
              return k < k_end ? p.dgates + static_cast<int64_t>(k) * rows : nullptr;
            });
        Tile::fill<kGradientThreads>(row_tile + Tile::kFloats, thread, share.first_column, p.input,
                                     p.aligned, p.dgates, [&](int line) {
                                       const int k = first_k + line;
                                       return k < k_end ? p.x_line(k) : nullptr;
                                     });
      },
      [&](int stage, int) {
        const float* row_tile = stages + stage * kStage;
#pragma unroll 1
        for (int step = 0; step < kTileK / 8; ++step) {
          multiply_add(sum, Tile::rows<4>(row_tile, warp_row, step, lane),
                       Tile::columns<4>(row_tile + Tile::kFloats, warp_column, step, lane));
        }
      });

#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int row = share.first_row + warp_row + Tile::row(i, v / 2, lane);
      const int n = share.first_column + warp_column + Tile::column<4>(0, v % 2, lane);
      if (row >= rows || n >= p.plan.part_columns) continue;
      *reinterpret_cast<float4*>(p.part_row(row) + n) = {sum.value[i][0][v], sum.value[i][1][v],
                                                         sum.value[i][2][v], sum.value[i][3][v]};
    }
  }
}

}  // namespace input_weights

}  // namespace hdetach::cuda
