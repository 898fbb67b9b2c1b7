// What a group of four warps holds in registers of a tile of recurrent_weight_products.cuh: gate
// gradients, h[t-1] and the extra columns, as floats. Loads of a group's next tile are under way
// while the other group splits its own.
#pragma once

#include <cfloat>

#include "kernels/cuda/weight_products.cuh"

namespace hdetach::cuda {
namespace recurrent_weights {

constexpr int kGroups = 2, kGroupWarps = 4, kGroupThreads = 32 * kGroupWarps;
constexpr int kExtra = 16, kThreadExtra = kExtra / kGroupWarps;

// A warp has all lines of its 32 rows and of its 32 columns of a tile, so that it finds their
// largest numbers alone. Eight lanes share a line, four neighbours each; a thread has eight lines.
// Lanes 8 on are four lines on, which other banks of a HalfTile hold.
constexpr int kLaneQuads = 8, kWarpColumns = 4 * kLaneQuads;
constexpr int kLines = kTileK * kLaneQuads / 32;
static_assert(kGroupWarps * kWarpColumns == kGradientTile && kTileK == 32, "a thread's lines");
__device__ __forceinline__ int first_line(int lane) { return lane / 8 % 2 * 4 + lane / 16; }
__device__ __forceinline__ constexpr int lines_on(int n) { return n % 2 * 2 + n / 2 * 8; }

// A thread's share of a tile, and of the extra columns the line `lane`, four neighbours.
struct HeldTile {
  float4 rows[kLines], columns[kLines];
  float extra[kThreadExtra];
};

// Numbers beyond it in a column of order 1 would take bits from the others there.
constexpr float kHuge = 0x1p16f;
__device__ __forceinline__ float without_huge(float v) {
  return fabsf(v) > kHuge && fabsf(v) <= FLT_MAX ? 0.0f : v;
}

// Where a thread reads. Rows and columns past the last are copies of the last four: what they are
// multiplied to is not kept.
struct TileLoads {
  const WeightProduct& p;
  int k_begin, k_end;
  int first_row;    // of the block
  int row, column;  // of its four neighbours
  int line;         // its first
  int lane, warp;   // in the group

  __device__ TileLoads(const WeightProduct& product, const BlockShare& share)
      : p(product),
        k_begin(share.k_begin),
        k_end(share.k_end),
        first_row(share.first_row),
        line(first_line(threadIdx.x % 32)),
        lane(threadIdx.x % 32),
        warp(threadIdx.x / 32 % kGroupWarps) {
    const int first = warp * kWarpColumns + lane % kLaneQuads * 4;
    row = min(share.first_row + first, 4 * p.hidden - 4);
    column = share.first_column + first;
    if (p.aligned) column = min(column, p.hidden - 4);
  }

  __device__ __forceinline__ int first_k(int tile) const { return k_begin + tile * kTileK; }
  __device__ __forceinline__ void load_lines(float4 (&to)[kLines], const float* from, int width,
                                             int tile) const {
    const auto at = [&](int n) {
      return reinterpret_cast<const float4*>(from + static_cast<int64_t>(lines_on(n)) * width);
    };
    if (first_k(tile + 1) <= k_end) {
#pragma unroll
      for (int n = 0; n < kLines; ++n) {
        to[n] = __ldg(at(n));
      }
      return;
    }
    const int lines = k_end - first_k(tile) - line;
#pragma unroll
    for (int n = 0; n < kLines; ++n) {
      to[n] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (lines_on(n) < lines) to[n] = __ldg(at(n));
    }
  }
  __device__ __forceinline__ void load_rows(float4 (&to)[kLines], int tile) const {
    const int64_t k = first_k(tile) + line;
    load_lines(to, p.dgates + k * (4 * p.hidden) + row, 4 * p.hidden, tile);
  }
  __device__ __forceinline__ void load_columns(float4 (&to)[kLines], int tile) const {
    if (p.aligned && first_k(tile) >= p.batch) {  // behind h0
      const int64_t k = first_k(tile) + line - p.batch;
      load_lines(to, p.h + k * p.hidden + column, p.hidden, tile);
      return;
    }
#pragma unroll
    for (int n = 0; n < kLines; ++n) {
      const int k = first_k(tile) + line + lines_on(n);
      const float* from = k < k_end ? p.h_line(k) : nullptr;
      const int valid = from == nullptr ? 0 : p.hidden - column;
      to[n].x = valid > 0 ? __ldg(from + column) : 0.0f;
      to[n].y = valid > 1 ? __ldg(from + column + 1) : 0.0f;
      to[n].z = valid > 2 ? __ldg(from + column + 2) : 0.0f;
      to[n].w = valid > 3 ? __ldg(from + column + 3) : 0.0f;
    }
  }
  __device__ __forceinline__ void load_extra(float (&to)[kThreadExtra], int tile) const {
    const int k = first_k(tile) + lane, first = kThreadExtra * warp;
    const int inputs = p.input <= kFusedInput ? p.input : 0;
    const float* from = k < k_end && first < inputs ? p.x_line(k) : nullptr;
#pragma unroll
    for (int e = 0; e < kThreadExtra; ++e) {
      to[e] = first + e == inputs ? 1.0f : 0.0f;  // the one multiplies zeros past the end
      if (from != nullptr && first + e < inputs) to[e] = __ldg(from + first + e);
    }
  }

  // Huge numbers mostly saturate their gates. Those that all gate gradients of the block's rows
  // multiply by zero are left out, since a sum by halves would lose the other numbers beside them.
  // Rarely needed: the gate gradients are read once more.
  __device__ __forceinline__ uint32_t lines_of_zeros(int tile) const {
    const int k = first_k(tile) + lane;
    bool zeros = k < k_end;
#pragma unroll 1
    for (int n = 0; n < kGradientTile && __any_sync(~0u, zeros); n += 4) {
      if (!zeros) continue;
      const int at = min(first_row + n, 4 * p.hidden - 4);
      const float4 v = __ldg(reinterpret_cast<const float4*>(
          p.dgates + static_cast<int64_t>(k) * (4 * p.hidden) + at));
      zeros = v.x == 0.0f && v.y == 0.0f && v.z == 0.0f && v.w == 0.0f;
    }
    return __ballot_sync(~0u, zeros);
  }
  __device__ __forceinline__ void leave_out_huge(float4 (&columns)[kLines], int tile) const {
    const uint32_t zeros = lines_of_zeros(tile);
#pragma unroll
    for (int n = 0; n < kLines; ++n) {
      float4& v = columns[n];
      if ((zeros >> (line + lines_on(n)) & 1) == 0) continue;
      v = {without_huge(v.x), without_huge(v.y), without_huge(v.z), without_huge(v.w)};
    }
  }
  __device__ __forceinline__ void leave_out_huge(float (&extra)[kThreadExtra], int tile) const {
    if ((lines_of_zeros(tile) >> lane & 1) == 0) return;
#pragma unroll
    for (int e = 0; e < kThreadExtra; ++e) extra[e] = without_huge(extra[e]);
  }
};

}  // namespace recurrent_weights
}  // namespace hdetach::cuda
