// Gate gradients times h[t-1] and, beside it, kExtra columns: the inputs (where fused), a one and
// zeros. All by halves (gemm_halves.cuh).
//
// Strategy: eight warps fill tiles and eight multiply them, so that the tensor cores never wait for
// a load or a split. The eight that fill are two groups that take tiles in turn: while one finds
// the largest gate gradient of its tile, scales, splits and stores it, the loads of the other's are
// under way. Each warp that multiplies sums 16 rows of the block's 128, all columns.
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
constexpr uint32_t kPower = 14;     // the largest of a tile is brought to 2^14 .. 2^15
constexpr float kScaleH = 0x1p15f;  // |h| <= 1; h0 alone may exceed that

// By whom: the first two groups of four warps multiply, the others fill.
constexpr int kMultiplyWarps = 8, kMultiplyGroups = kMultiplyWarps / kGroupWarps;
constexpr int kThreads = 32 * kMultiplyWarps + kGroups * kGroupThreads;
static_assert(kGradientTile == 64 * kMultiplyGroups && kHalfColumns == kGradientTile + kExtra, "");

struct Stage {
  char rows[RowTile::kBytes], columns[ColumnTile::kBytes];
};
struct alignas(16) Inverses {  // of a stage's scales: what makes sums of its products true
  float extra[kExtra], h;
};
struct Largest {  // of each warp's share of a tile
  float4 rows, columns;
};
struct Shared {
  Stage stages[kStages];
  Largest largest[kGroups][2];
  Inverses inverses[kStages];
  StageRing<kStages> ring;
};
constexpr int kBytes = sizeof(Shared);

__device__ __forceinline__ float largest(const float4 (&v)[kLines]) {
  float out = 0.0f;
#pragma unroll
  for (int n = 0; n < kLines; ++n) {
    out =
        fmaxf(fmaxf(fmaxf(out, fabsf(v[n].x)), fabsf(v[n].y)), fmaxf(fabsf(v[n].z), fabsf(v[n].w)));
  }
  return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(out)));
}
__device__ __forceinline__ float largest(float4 v) {
  return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

__device__ __forceinline__ void barrier_of_group(int group) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(kGroupThreads) : "memory");
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
__device__ __forceinline__ void store_lines(char* tile, const float4 (&v)[kLines], float scale) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % kGroupWarps;
  static_assert(kGroupWarps == 4, "lines of a thread are 4 apart, those it places anew 8");
  const int at[2] = {Tile::at(warp, 4 * lane), Tile::at(warp + 4, 4 * lane)};
#pragma unroll
  for (int n = 0; n < kLines; ++n) {
    Tile::store_quad(tile + at[n % 2] + n / 2 * Tile::kEightLines,
                     {v[n].x * scale, v[n].y * scale, v[n].z * scale, v[n].w * scale});
  }
}

// A warp has all lines of its columns: each has a scale of its own.
__device__ __forceinline__ void store_extra(Stage& stage, Inverses& inverses,
                                            const float (&v)[kThreadExtra], float inverse_rows) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 % kGroupWarps * kThreadExtra;
  float scaled[kThreadExtra];
#pragma unroll
  for (int e = 0; e < kThreadExtra; ++e) {
    const uint32_t most = __reduce_max_sync(~0u, __float_as_uint(fabsf(v[e])));
    const float scale = scale_to_power(__uint_as_float(most), kPower);
    scaled[e] = v[e] * scale;
    if (lane == 0) inverses.extra[first + e] = inverse_rows * inverse_power(scale);
  }
  ColumnTile::store_quad(stage.columns + ColumnTile::at(lane, kGradientTile + first),
                         {scaled[0], scaled[1], scaled[2], scaled[3]});
}

// What the warps of a group do that fills.
__device__ __forceinline__ void fill(const WeightProduct& p, const BlockShare& share, int group,
                                     Shared& shared) {
  const TileLoads loads(p, share);
  const int tiles = share.tiles();
  HeldTile held;
  loads.load_rows(held.rows, group);
  loads.load_columns(held.columns, group);
  loads.load_extra(held.extra, group);
  StageRing<kStages>::Place place{group};
  int parity = 0;
#pragma unroll 1
  for (int tile = group; tile < tiles; tile += kGroups) {
    Largest& most = shared.largest[group][parity];
    const bool initial = loads.is_initial(tile);
    const float most_rows = largest(held.rows);
    const float most_columns = initial ? largest(held.columns) : 0.0f;
    if (loads.lane == 0) {
      reinterpret_cast<float*>(&most.rows)[loads.warp] = most_rows;
      reinterpret_cast<float*>(&most.columns)[loads.warp] = most_columns;
    }
    barrier_of_group(group);
    const float scale = scale_to_power(largest(most.rows), kPower);
    const float most_h = largest(most.columns);
    const float scale_h = most_h > 1.0f ? scale_to_power(most_h, kPower) : kScaleH;

    shared.ring.wait_until_empty(place);
    Stage& stage = shared.stages[place.stage];
    Inverses& inverses = shared.inverses[place.stage];
    const bool more = tile + kGroups < tiles;
    store_lines<ColumnTile>(stage.columns, held.columns, scale_h);
    if (more) loads.load_columns(held.columns, tile + kGroups);
    store_lines<RowTile>(stage.rows, held.rows, scale);
    if (more) loads.load_rows(held.rows, tile + kGroups);
    store_extra(stage, inverses, held.extra, inverse_power(scale));
    if (more) loads.load_extra(held.extra, tile + kGroups);
    if (loads.lane + loads.warp == 0) {
      inverses.h = inverse_power(scale) * inverse_power(scale_h);
    }
    show_to_tensor_cores();
    __syncwarp();
    if (loads.lane == 0) shared.ring.say_full(place);
    place.advance(kGroups);
    parity ^= 1;
  }
}

// Only some lanes of a warp that multiplies read a stage's scales, and each of them says itself
// that it has: racecheck takes no other lane's word for it.
constexpr int kReaders = 4;
__device__ __forceinline__ float from_reader(float value) {
  return __shfl_sync(~0u, value, threadIdx.x % kReaders);
}

// What the others do, and where their sums go.
__device__ __forceinline__ void multiply_and_add(const WeightProduct& p, const BlockShare& share,
                                                 int group, Shared& shared) {
  constexpr int kMainTiles = kGradientTile / 8;
  const int lane = threadIdx.x % 32, tiles = share.tiles();
  float sum[kHalfColumnTiles][4] = {};
  StageRing<kStages>::Place place{0};
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    shared.ring.wait_until_full(place);
    const Stage& stage = shared.stages[place.stage];
    const Inverses& inverses = shared.inverses[place.stage];
    float inverse = 0.0f;
    float2 extra[kExtra / 8] = {};
    if (lane < kReaders) {
      inverse = inverses.h;
#pragma unroll
      for (int j = 0; j < kExtra / 8; ++j) {
        extra[j] = *reinterpret_cast<const float2*>(inverses.extra + 8 * j + lane * 2);
      }
    }
    inverse = from_reader(inverse);
#pragma unroll
    for (int j = 0; j < kExtra / 8; ++j) {
      extra[j] = {from_reader(extra[j].x), from_reader(extra[j].y)};
    }
    multiply_half_tiles(
        shared_address(stage.rows), shared_address(stage.columns), group,
        [&] {
          __syncwarp();
          if (lane < kReaders) shared.ring.say_empty(place);
        },
        [&](int j, const float(&d)[4]) {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            const float back = j < kMainTiles ? inverse
                               : v % 2 == 0   ? extra[j - kMainTiles].x
                                              : extra[j - kMainTiles].y;
            sum[j][v] = fmaf(d[v], back, sum[j][v]);
          }
        });
    place.advance(1);
  }

  const int stride = p.plan.part_columns, main_columns = stride - kExtra;
  const int first_row = share.first_row + threadIdx.x / 32 * 16 + lane / 4;
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
  if (threadIdx.x == 0) shared.ring.start<kGroupWarps, kReaders * kMultiplyWarps>();
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
