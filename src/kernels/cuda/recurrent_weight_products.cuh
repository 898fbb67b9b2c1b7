// Gate gradients times h[t-1] and, beside it, kExtra columns: the inputs (where fused), a one and
// zeros. All by halves (gemm_halves.cuh).
//
// Strategy: eight warps fill tiles and eight multiply them, so that the tensor cores never wait for
// a load or a split. The eight that fill are two groups that take tiles in turn: while one finds
// the largest number of each row and column of its tile, scales, splits and stores them, the loads
// of the other's are under way. Each warp that multiplies sums 16 rows of the block's 128, all
// columns.
//
// Scales: a row (gate gradients of one gate and unit) has its own in every tile, and so has an
// extra column. A unit's h lies in -1 .. 1 and is rarely tiny, so that one scale serves all columns
// of nearly every tile; where it would lose bits, by a tiny h or a large h0, each column has its
// own.
//
// Floor of a tile, cycles of an SM: 864 of tensor cores by wgmma (1728 by mma.sync), 900 of shared
// memory.
#pragma once

#include "kernels/cuda/gemm_halves.cuh"
#include "kernels/cuda/recurrent_weight_loads.cuh"
#include "kernels/cuda/stage_ring.cuh"
#include "kernels/cuda/weight_products.cuh"

namespace hdetach::cuda {
namespace recurrent_weights {

constexpr int kStages = 4;
constexpr uint32_t kPower = 14;  // the largest of a row or column is brought to 2^14 .. 2^15
constexpr float kScaleH = 0x1p14f, kLeastH = 0x1p-12f;  // the one scale, for kLeastH <= |h| <= 1

// By whom: the first two groups of four warps multiply, the others fill.
constexpr int kMultiplyWarps = 8, kMultiplyGroups = kMultiplyWarps / kGroupWarps;
constexpr int kThreads = 32 * kMultiplyWarps + kGroups * kGroupThreads;
static_assert(kGradientTile == 64 * kMultiplyGroups && kHalfColumns == kGradientTile + kExtra, "");

struct Stage {
  char rows[RowTile::kBytes], columns[ColumnTile::kBytes];
};
// Of a stage: what makes sums of its products true is the factor of the row times that of the
// column, which is 1 for a column of h that has the one scale.
struct alignas(16) Factors {
  float rows[kGradientTile], columns[kHalfColumns];
  int one_scale[kGroupWarps];  // whether a warp's columns of h have it
};
struct Shared {
  Stage stages[kStages];
  Factors factors[kStages];
  StageRing<kStages> ring;
};
constexpr int kBytes = sizeof(Shared);

// The largest magnitudes of a thread's four rows or columns, over all lines of the tile.
__device__ __forceinline__ float4 largest(const float4 (&v)[kLines]) {
  float4 out = {0.0f, 0.0f, 0.0f, 0.0f};
  const auto include = [&](float4 other) {
    out = {fmaxf(out.x, fabsf(other.x)), fmaxf(out.y, fabsf(other.y)), fmaxf(out.z, fabsf(other.z)),
           fmaxf(out.w, fabsf(other.w))};
  };
#pragma unroll
  for (int n = 0; n < kLines; ++n) include(v[n]);
#pragma unroll
  for (int apart = kLaneQuads; apart < 32; apart *= 2) {
    include({__shfl_xor_sync(~0u, out.x, apart), __shfl_xor_sync(~0u, out.y, apart),
             __shfl_xor_sync(~0u, out.z, apart), __shfl_xor_sync(~0u, out.w, apart)});
  }
  return out;
}
// And of its extra columns.
__device__ __forceinline__ void find_largest(const float (&v)[kThreadExtra],
                                             float (&most)[kThreadExtra]) {
#pragma unroll
  for (int e = 0; e < kThreadExtra; ++e) {
    most[e] = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(fabsf(v[e]))));
  }
}
__device__ __forceinline__ float4 scales_for(float4 largest) {
  return {scale_to_power(largest.x, kPower), scale_to_power(largest.y, kPower),
          scale_to_power(largest.z, kPower), scale_to_power(largest.w, kPower)};
}
// times * (1 / scale)
__device__ __forceinline__ float4 inverse_powers(float4 scale, float times) {
  return {inverse_power(scale.x) * times, inverse_power(scale.y) * times,
          inverse_power(scale.z) * times, inverse_power(scale.w) * times};
}
__device__ __forceinline__ bool suits_one_scale(float largest_h) {
  return largest_h == 0.0f || (largest_h >= kLeastH && largest_h <= 1.0f);
}

__device__ __forceinline__ bool is_huge(float4 largest) {
  return fmaxf(fmaxf(largest.x, largest.y), fmaxf(largest.z, largest.w)) > kHuge;
}

// A warp that multiplies needs more registers than one that fills, where they can be dealt out so.
constexpr int kMultiplyRegisters = 152, kFillRegisters = 104;
template <int kRegisters, bool kMore>
__device__ __forceinline__ void change_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (kMore) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
  }
#endif
}
// wgmma reads shared memory by another way than stores reach it.
__device__ __forceinline__ void show_to_tensor_cores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <class Tile>
__device__ __forceinline__ void store_lines(char* tile, const float4 (&v)[kLines], float4 scale,
                                            int first) {
  const int line = first_line(threadIdx.x % 32);
  const int at[2] = {Tile::at(line, first), Tile::at(line + lines_on(1), first)};
#pragma unroll
  for (int n = 0; n < kLines; ++n) {
    static_assert(lines_on(2) == 8, "every second line is eight on");
    Tile::store_quad(tile + at[n % 2] + n / 2 * Tile::kEightLines,
                     {v[n].x * scale.x, v[n].y * scale.y, v[n].z * scale.z, v[n].w * scale.w});
  }
}

__device__ __forceinline__ void store_extra(Stage& stage, Factors& factors,
                                            const float (&v)[kThreadExtra],
                                            const float (&most)[kThreadExtra]) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 % kGroupWarps * kThreadExtra;
  float scaled[kThreadExtra];
#pragma unroll
  for (int e = 0; e < kThreadExtra; ++e) {
    const float scale = scale_to_power(most[e], kPower);
    scaled[e] = v[e] * scale;
    if (lane == 0) factors.columns[kGradientTile + first + e] = inverse_power(scale) * kScaleH;
  }
  ColumnTile::store_quad(stage.columns + ColumnTile::at(lane, kGradientTile + first),
                         {scaled[0], scaled[1], scaled[2], scaled[3]});
}

// Some lanes of a warp write a stage's factors, or read them, and each of them says itself that it
// has: racecheck takes no other lane's word for it. The __syncwarp before speaks for the tiles.

// What the warps of a group do that fills.
__device__ __forceinline__ void fill(const WeightProduct& p, const BlockShare& share, int group,
                                     Shared& shared) {
  const TileLoads loads(p, share);
  const int tiles = share.tiles();
  HeldTile held;
  loads.load_rows(held.rows, group);
  loads.load_columns(held.columns, group);
  loads.load_extra(held.extra, group);
  const int first = loads.warp * kWarpColumns + loads.lane % kLaneQuads * 4;  // of the tile
  StageRing<kStages>::Place place{group};
#pragma unroll 1
  for (int tile = group; tile < tiles; tile += kGroups) {
    float4 most_h = largest(held.columns);
    const bool one_scale =
        __all_sync(~0u, suits_one_scale(most_h.x) && suits_one_scale(most_h.y) &&
                            suits_one_scale(most_h.z) && suits_one_scale(most_h.w));
    float4 scale = {kScaleH, kScaleH, kScaleH, kScaleH};
    if (!one_scale) {
      if (__any_sync(~0u, is_huge(most_h))) {
        loads.leave_out_huge(held.columns, tile);
        most_h = largest(held.columns);
      }
      scale = scales_for(most_h);
    }

    shared.ring.wait_until_empty(place);
    Stage& stage = shared.stages[place.stage];
    Factors& factors = shared.factors[place.stage];
    const bool more = tile + kGroups < tiles, keeps = loads.lane < kLaneQuads;
    store_lines<ColumnTile>(stage.columns, held.columns, scale, first);
    if (more) loads.load_columns(held.columns, tile + kGroups);
    if (keeps) *reinterpret_cast<float4*>(factors.columns + first) = inverse_powers(scale, kScaleH);
    scale = scales_for(largest(held.rows));
    store_lines<RowTile>(stage.rows, held.rows, scale, first);
    if (more) loads.load_rows(held.rows, tile + kGroups);
    if (keeps)
      *reinterpret_cast<float4*>(factors.rows + first) = inverse_powers(scale, 1.0f / kScaleH);
    float most_extra[kThreadExtra];
    find_largest(held.extra, most_extra);
    if (is_huge({most_extra[0], most_extra[1], most_extra[2], most_extra[3]})) {
      loads.leave_out_huge(held.extra, tile);
      find_largest(held.extra, most_extra);
    }
    store_extra(stage, factors, held.extra, most_extra);
    if (more) loads.load_extra(held.extra, tile + kGroups);
    if (loads.lane == 0) factors.one_scale[loads.warp] = one_scale;
    show_to_tensor_cores();
    __syncwarp();
    if (keeps) shared.ring.say_full(place);
    place.advance(kGroups);
  }
}

constexpr int kReaders = 8;
__device__ __forceinline__ float from_reader(float value, int reader) {
  return __shfl_sync(~0u, value, reader);
}

// The factors of columns 8 j + lane % 4 * 2 and the one after it.
__device__ __forceinline__ float2 column_factors(const Factors& factors, int j) {
  const int lane = threadIdx.x % 32;
  float2 out = {};
  if (lane < 4) out = *reinterpret_cast<const float2*>(factors.columns + 8 * j + lane * 2);
  return {from_reader(out.x, lane % 4), from_reader(out.y, lane % 4)};
}

// What the others do, and where their sums go.
__device__ __forceinline__ void multiply_and_add(const WeightProduct& p, const BlockShare& share,
                                                 int group, Shared& shared) {
  constexpr int kMainTiles = kGradientTile / 8;
  const int lane = threadIdx.x % 32, tiles = share.tiles();
  const int warp_row = threadIdx.x / 32 * 16;
  float sum[kHalfColumnTiles][4] = {};
  StageRing<kStages>::Place place{0};
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    shared.ring.wait_until_full(place);
    const Stage& stage = shared.stages[place.stage];
    const Factors& factors = shared.factors[place.stage];
    float rows[2] = {};
    bool one_scale = true;
    if (lane < kReaders) {
      rows[0] = factors.rows[warp_row + lane];
      rows[1] = factors.rows[warp_row + 8 + lane];
      one_scale = factors.one_scale[lane % kGroupWarps];
    }
    // Of the thread's rows, lane / 4 and 8 on.
    const float row_factors[2] = {from_reader(rows[0], lane / 4), from_reader(rows[1], lane / 4)};
    one_scale = __all_sync(~0u, one_scale);
    // One loop for both kinds of tiles, factors read where they are used: written out for each
    // kind, the sums did not fit the registers (a quarter slower).
    const auto add = [&](int j, const float(&d)[4]) {
      if (j < kMainTiles && one_scale) {
#pragma unroll
        for (int v = 0; v < 4; ++v) sum[j][v] = fmaf(d[v], row_factors[v / 2], sum[j][v]);
        return;
      }
      const float2 columns = column_factors(factors, j);
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float factor = row_factors[v / 2] * (v % 2 == 0 ? columns.x : columns.y);
        sum[j][v] = fmaf(d[v], factor, sum[j][v]);
      }
    };
    multiply_half_tiles(shared_address(stage.rows), shared_address(stage.columns), group, add);
    __syncwarp();
    if (lane < kReaders) shared.ring.say_empty(place);
    place.advance(1);
  }

  const int stride = p.plan.part_columns, main_columns = stride - kExtra;
  const int first_row = share.first_row + warp_row + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + 8 * half;
    if (row >= 4 * p.hidden) break;
    float* line = p.part() + static_cast<int64_t>(row) * stride + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kHalfColumnTiles; ++j) {
      const bool is_extra = j >= kMainTiles;
      const int n = is_extra ? main_columns + 8 * (j - kMainTiles) : share.first_column + 8 * j;
      if (is_extra ? share.first_column != 0 : n + lane % 4 * 2 >= main_columns) continue;
      *reinterpret_cast<float2*>(line + n) = {sum[j][2 * half], sum[j][2 * half + 1]};
    }
  }
}

static __global__ void __launch_bounds__(kThreads, 1) multiply(WeightProduct p) {
  extern __shared__ __align__(1024) char recurrent_memory[];
  Shared& shared = *reinterpret_cast<Shared*>(recurrent_memory);
  cudaTriggerProgrammaticLaunchCompletion();
  if (threadIdx.x == 0) shared.ring.start<kLaneQuads * kGroupWarps, kReaders * kMultiplyWarps>();
  __syncthreads();
  p.move_to_replica();
  const BlockShare share(p.plan, p.sum);
  const int group = __shfl_sync(~0u, threadIdx.x / kGroupThreads, 0);
  if (group < kMultiplyGroups) {
    change_registers<kMultiplyRegisters, true>();
    multiply_and_add(p, share, group, shared);
  } else {
    change_registers<kFillRegisters, false>();
    fill(p, share, group - kMultiplyGroups, shared);
  }
}

}  // namespace recurrent_weights
}  // namespace hdetach::cuda
