// Gate gradients times h[t-1] and, beside it, kExtra columns: the inputs (where fused), a one and
// zeros. All by halves, 8 warps of 32 x 8 kTilesN.
//
// While a tile is multiplied the next one is split, from registers, and the one after that is
// loaded into those. Its scale is a guess, the one of the tile before; the largest magnitude that
// was met is known after the barrier, and a guess that was bad is made good from device memory
// before going on. That is rare: gate gradients change their size slowly from step to step.
#pragma once

#include <type_traits>

#include "kernels/cuda/gemm_halves.cuh"
#include "kernels/cuda/weight_products.cuh"

namespace hdetach::cuda {
namespace recurrent_weights {

constexpr int kAhead = 4;           // tiles ahead that are fetched into the L2 cache
constexpr uint32_t kPower = 12;     // new scales bring the largest gate gradient to 2^12 .. 2^13
constexpr float kMost = 0x1p15f;    // then a scale lasts as long as the largest is below this
constexpr float kLeast = 0x1p5f;    // and at least this
constexpr float kScaleH = 0x1p15f;  // |h| <= 1; h0 alone may exceed that

using Planes = HalfPlanes<kGradientTile>;
using ExtraPlanes = HalfPlanes<16>;
constexpr int kStageBytes = 2 * Planes::kBytes + ExtraPlanes::kBytes;
constexpr int kBytes = 2 * kStageBytes;

// A thread's share of a tile: lines warp + 8 n, four neighbours each, and of the extra columns the
// line `lane`, two neighbours.
struct Held {
  float4 rows[4], columns[4];
  float extra[2];
};

__device__ __forceinline__ float largest(const float4 (&v)[4]) {
  float out = 0.0f;
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    out =
        fmaxf(fmaxf(fmaxf(out, fabsf(v[n].x)), fabsf(v[n].y)), fmaxf(fabsf(v[n].z), fabsf(v[n].w)));
  }
  return out;
}

// Where a thread reads. Rows and columns past the last are copies of the last four: what they are
// multiplied to is not kept.
struct Source {
  const WeightProduct& p;
  int k_begin, k_end;
  int row, column;  // of its four neighbours
  int lane, warp;
  int fetch_column;  // of its part of a line in fetch_to_cache

  __device__ Source(const WeightProduct& product, int begin, int end, int first_row,
                    int first_column)
      : p(product), k_begin(begin), k_end(end), lane(threadIdx.x % 32), warp(threadIdx.x / 32) {
    row = min(first_row + 4 * lane, 4 * p.hidden - 4);
    column = first_column + 4 * lane;
    if (p.aligned) column = min(column, p.hidden - 4);
    fetch_column = (fetches_h() ? first_column : first_row) + lane % 4 * 32;
  }

  __device__ __forceinline__ bool fetches_h() const { return lane % 8 >= 4; }
  __device__ __forceinline__ int first_k(int tile) const { return k_begin + tile * kTileK; }
  __device__ __forceinline__ bool is_initial(int tile) const { return first_k(tile) < p.batch; }

  // Four lines, eight apart.
  __device__ __forceinline__ void load_lines(float4 (&to)[4], const float* from, int stride,
                                             int tile) const {
    const int64_t apart = static_cast<int64_t>(8) * stride;
    if (first_k(tile + 1) <= k_end) {
#pragma unroll
      for (int n = 0; n < 4; ++n) to[n] = __ldg(reinterpret_cast<const float4*>(from + n * apart));
      return;
    }
    const int lines = k_end - first_k(tile) - warp;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      to[n] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (8 * n < lines) to[n] = __ldg(reinterpret_cast<const float4*>(from + n * apart));
    }
  }
  __device__ __forceinline__ void load_rows(float4 (&to)[4], int tile) const {
    const int64_t k = first_k(tile) + warp;
    load_lines(to, p.dgates + k * (4 * p.hidden) + row, 4 * p.hidden, tile);
  }
  __device__ __forceinline__ void load_columns(float4 (&to)[4], int tile) const {
    if (p.aligned && !is_initial(tile)) {
      const int64_t k = first_k(tile) + warp - p.batch;
      load_lines(to, p.h + k * p.hidden + column, p.hidden, tile);
      return;
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int k = first_k(tile) + warp + 8 * n;
      const float* from = k < k_end ? p.h_line(k) : nullptr;
      const int valid = from == nullptr ? 0 : p.hidden - column;
      to[n].x = valid > 0 ? __ldg(from + column) : 0.0f;
      to[n].y = valid > 1 ? __ldg(from + column + 1) : 0.0f;
      to[n].z = valid > 2 ? __ldg(from + column + 2) : 0.0f;
      to[n].w = valid > 3 ? __ldg(from + column + 3) : 0.0f;
    }
  }
  __device__ __forceinline__ void load_extra(float (&to)[2], int tile) const {
    const int k = first_k(tile) + lane, inputs = p.input <= kFusedInput ? p.input : 0;
    const float* from = k < k_end && 2 * warp < inputs ? p.x_line(k) : nullptr;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int extra = 2 * warp + e;
      to[e] = extra == inputs ? 1.0f : 0.0f;  // the one multiplies zeros past the end
      if (from != nullptr && extra < inputs) to[e] = __ldg(from + extra);
    }
  }
  // 128 bytes a thread.
  __device__ __forceinline__ void fetch_to_cache(int tile) const {
    const int k = first_k(tile) + 4 * warp + lane / 8;
    const int line = fetches_h() ? k - p.batch : k, width = fetches_h() ? p.hidden : 4 * p.hidden;
    if (k >= k_end || line < 0 || fetch_column >= width) return;
    const float* base = fetches_h() ? p.h : p.dgates;
    asm volatile(
        "prefetch.global.L2 [%0];" ::"l"(base + static_cast<int64_t>(line) * width + fetch_column));
  }
};

template <int kTilesN, int kExtra>
__global__ void __launch_bounds__(kGradientThreads, 1) multiply(WeightProduct p) {
  extern __shared__ float4 shared[];
  __shared__ float4 largest_rows[2][2], largest_columns[2][2];  // a float a warp
  __shared__ float2 extra_inverse[2][8];
  char* stages = reinterpret_cast<char*>(shared);
  constexpr int kGroup = 4, kExtraTiles = kExtra / 8;
  p.move_to_replica();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = blockIdx.y % p.plan.row_tiles * kGradientTile;
  const int first_column = blockIdx.y / p.plan.row_tiles * (16 * kTilesN);
  const int k_begin = blockIdx.x * p.plan.split_k, k_end = min(p.sum, k_begin + p.plan.split_k);
  const int tiles = (k_end - k_begin + kTileK - 1) / kTileK;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * (8 * kTilesN);
  const int extra_tile = warp % 2;  // of the warp's two row tiles the one whose extras it makes

  const Source source(p, k_begin, k_end, first_row, first_column);
  Held held;
  const auto publish = [&](int tile) {
    const uint32_t rows = __reduce_max_sync(~0u, __float_as_uint(largest(held.rows)));
    if (lane == 0) {
      reinterpret_cast<float*>(largest_rows[tile % 2])[warp] = __uint_as_float(rows);
    }
    if (!source.is_initial(tile)) return;
    const uint32_t columns = __reduce_max_sync(~0u, __float_as_uint(largest(held.columns)));
    if (lane == 0) {
      reinterpret_cast<float*>(largest_columns[tile % 2])[warp] = __uint_as_float(columns);
    }
  };
  const auto published = [](const float4(&v)[2]) {
    return fmaxf(fmaxf(fmaxf(v[0].x, v[0].y), fmaxf(v[0].z, v[0].w)),
                 fmaxf(fmaxf(v[1].x, v[1].y), fmaxf(v[1].z, v[1].w)));
  };
  const auto store = [&](char* planes, const float4(&v)[4], float scale) {
#pragma unroll
    for (int n = 0; n < 4; ++n) Planes::store_quad(planes, warp + 8 * n, 4 * lane, v[n], scale);
  };
  const auto store_extra = [&](int stage) {
    // A warp has all lines of its columns: their scales are exact.
    float2 inverse;
    float scaled[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const uint32_t most = __reduce_max_sync(~0u, __float_as_uint(fabsf(held.extra[e])));
      const float scale = scale_to_power(__uint_as_float(most), kPower);
      (e == 0 ? inverse.x : inverse.y) = inverse_power(scale);
      scaled[e] = held.extra[e] * scale;
    }
    ExtraPlanes::store_pair(stages + stage * kStageBytes + 2 * Planes::kBytes, lane, 2 * warp,
                            split_f16(scaled[0], scaled[1]));
    if (lane == 0) extra_inverse[stage][warp] = inverse;
  };
  const auto scale_of_h = [&](int tile) {
    if (!source.is_initial(tile)) return kScaleH;
    const float most = published(largest_columns[tile % 2]);
    return most > 1.0f ? scale_to_power(most, 14) : kScaleH;
  };

  source.load_rows(held.rows, 0);
  source.load_columns(held.columns, 0);
  source.load_extra(held.extra, 0);
#pragma unroll 1
  for (int tile = 1; tile < kAhead; ++tile) source.fetch_to_cache(tile);
  publish(0);
  __syncthreads();
  float scale = scale_to_power(published(largest_rows[0]), kPower);
  float scale_h = scale_of_h(0);
  float inverse = inverse_power(scale) * inverse_power(scale_h);
  store(stages, held.rows, scale);
  store(stages + Planes::kBytes, held.columns, scale_h);
  store_extra(0);
  source.load_rows(held.rows, 1);
  source.load_columns(held.columns, 1);
  source.load_extra(held.extra, 1);
  __syncthreads();

  float sum[2][kTilesN][4] = {}, extra_sum[kExtraTiles][4] = {};
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
  const uint32_t rows_start = Planes::rows_start(base, warp_row, lane);
  const uint32_t columns_start = Planes::columns_start(base + Planes::kBytes, warp_column, lane);
  const uint32_t extra_start = ExtraPlanes::columns_start(base + 2 * Planes::kBytes, 0, lane);
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % 2, other = 1 - stage;
    const uint32_t offset = stage * kStageBytes;
    char* next = stages + other * kStageBytes;
    HalfFragmentA a[2][2];
    float extra_d[kExtraTiles][4];
#pragma unroll
    for (int first = 0; first < kTilesN; first += kGroup) {
      float d[2][kGroup][4];
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        if (first == 0) {
#pragma unroll
          for (int i = 0; i < 2; ++i) a[step][i] = Planes::rows(rows_start + offset, i, step);
        }
        HalfFragmentB b[kGroup], extra_b[kExtraTiles];
        HalfFragmentA extra_a;
#pragma unroll
        for (int j = 0; j < kGroup && first + j < kTilesN; ++j) {
          b[j] = Planes::columns(columns_start + offset, first + j, step);
        }
        if (first == kGroup) {
#pragma unroll
          for (int j = 0; j < kExtraTiles; ++j) {
            extra_b[j] = ExtraPlanes::columns(extra_start + offset, j, step);
          }
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            extra_a.high[v] = extra_tile == 0 ? a[step][0].high[v] : a[step][1].high[v];
            extra_a.low[v] = extra_tile == 0 ? a[step][0].low[v] : a[step][1].low[v];
          }
        }
        const auto multiply = [&](auto kind) {
          constexpr HalfProduct kProduct = decltype(kind)::value;
          const bool fresh = step == 0 && kProduct == HalfProduct::kLowHigh;
#pragma unroll
          for (int j = 0; j < kGroup && first + j < kTilesN; ++j) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              multiply_add_halves<kProduct>(d[i][j], a[step][i], b[j], fresh);
            }
          }
          if (first != kGroup) return;
#pragma unroll
          for (int j = 0; j < kExtraTiles; ++j) {
            multiply_add_halves<kProduct>(extra_d[j], extra_a, extra_b[j], fresh);
          }
        };
        multiply(std::integral_constant<HalfProduct, HalfProduct::kLowHigh>{});
        if (first == 0 && step == 0) {
          publish(tile + 1);
          store(next, held.rows, scale);
          source.load_rows(held.rows, tile + 2);
        }
        multiply(std::integral_constant<HalfProduct, HalfProduct::kHighLow>{});
        multiply(std::integral_constant<HalfProduct, HalfProduct::kHighHigh>{});
        if (first == 0 && step == 0) {
          store(next + Planes::kBytes, held.columns, kScaleH);
          source.load_columns(held.columns, tile + 2);
        }
        if (first == kGroup && step == 0) {
          store_extra(other);
          source.load_extra(held.extra, tile + 2);
          source.fetch_to_cache(tile + kAhead);
        }
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < kGroup && first + j < kTilesN; ++j) {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            sum[i][first + j][v] = fmaf(d[i][j][v], inverse, sum[i][first + j][v]);
          }
        }
      }
    }
    const float inverse_rows = inverse_power(scale);
#pragma unroll
    for (int j = 0; j < kExtraTiles; ++j) {
      const float2 columns = extra_inverse[stage][4 * j + lane % 4];
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float back = inverse_rows * (v % 2 == 0 ? columns.x : columns.y);
        extra_sum[j][v] = fmaf(extra_d[j][v], back, extra_sum[j][v]);
      }
    }
    __syncthreads();

    // How good was the guess?
    const float most = published(largest_rows[other]);
    const bool good = most == 0.0f || (most * scale < kMost && most * scale >= kLeast);
    const float better = good ? scale : scale_to_power(most, kPower);
    scale_h = scale_of_h(tile + 1);
    if (better != scale || scale_h != kScaleH) {
      float4 again[4];
      scale = better;
      source.load_rows(again, tile + 1);
      store(next, again, scale);
      source.load_columns(again, tile + 1);
      store(next + Planes::kBytes, again, scale_h);
      __syncthreads();
    }
    inverse = inverse_power(scale) * inverse_power(scale_h);
  }

  const int rows = 4 * p.hidden, stride = p.plan.part_columns, padded = stride - kExtra;
  float* out = p.part();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + warp_row + 16 * i + 8 * half + lane / 4;
      if (row >= rows) continue;
      float* line = out + static_cast<int64_t>(row) * stride;
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        const int n = first_column + warp_column + 8 * j + lane % 4 * 2;
        if (n >= padded) continue;
        *reinterpret_cast<float2*>(line + n) = {sum[i][j][2 * half], sum[i][j][2 * half + 1]};
      }
      if (first_column != 0 || i != extra_tile) continue;
#pragma unroll
      for (int j = 0; j < kExtraTiles; ++j) {
        *reinterpret_cast<float2*>(line + padded + 8 * j + lane % 4 * 2) = {
            extra_sum[j][2 * half], extra_sum[j][2 * half + 1]};
      }
    }
  }
}

}  // namespace recurrent_weights

}  // namespace hdetach::cuda
