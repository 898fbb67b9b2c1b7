// Products on the tensor cores with operands split in two halves (f16) instead of two tf32: half as
// many instructions for the same 22 bits of an operand.
//
// Strategy: whoever stages a tile scales it by a power of two, splits it and stores two planes in
// shared memory, so that a number is split once for all warps; ldmatrix then reads fragments that
// need no more work. Halves have a narrow range: with the largest magnitude of a tile scaled to 2^p
// the two halves of any number leave an absolute error of 2^-25, which is 2^-(25+p) of the largest.
// So a scale is for numbers of one kind, such as gate gradients or a column of inputs.
//
// Tensor cores add by truncation: sums stay there for kTileK of k only, then join a float32 sum.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemm_tile.cuh"

namespace hdetach::cuda {

__device__ __forceinline__ void load_transposed(uint32_t (&out)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared)
               : "memory");
}

struct HalfFragmentA {  // 16 rows, 16 of k
  uint32_t high[4], low[4];
};
struct HalfFragmentB {  // 8 columns, 16 of k: high k, high k + 8, low k, low k + 8
  uint32_t value[4];
};

// A tile as [high, low][kTileK][kWidth]. Addresses are those of shared memory, in bytes.
template <int kWidth>
struct HalfPlanes {
  static_assert(kWidth % 16 == 0, "lines an odd number of 16 bytes apart: no bank conflicts");
  static constexpr int kStride = 2 * (kWidth + 8), kPlane = kTileK * kStride, kBytes = 2 * kPlane;

  static __device__ __forceinline__ void store_pair(char* tile, int k, int column, HalfPairs v) {
    char* to = tile + k * kStride + 2 * column;
    *reinterpret_cast<uint32_t*>(to) = v.high;
    *reinterpret_cast<uint32_t*>(to + kPlane) = v.low;
  }
  static __device__ __forceinline__ void store_quad(char* tile, int k, int column, float4 v,
                                                    float scale) {
    const HalfPairs first = split_f16(v.x * scale, v.y * scale),
                    second = split_f16(v.z * scale, v.w * scale);
    char* to = tile + k * kStride + 2 * column;
    *reinterpret_cast<uint2*>(to) = {first.high, second.high};
    *reinterpret_cast<uint2*>(to + kPlane) = {first.low, second.low};
  }

  // Where a lane reads fragments of the tile at `shared`, its part of what follows.
  static __device__ __forceinline__ uint32_t rows_start(uint32_t shared, int first_row, int lane) {
    return shared + (lane % 8 + lane / 16 * 8) * kStride + 2 * (first_row + lane / 8 % 2 * 8);
  }
  static __device__ __forceinline__ uint32_t columns_start(uint32_t shared, int first, int lane) {
    return shared + lane % 16 * kStride + lane / 16 * kPlane + 2 * first;
  }
  static __device__ __forceinline__ HalfFragmentA rows(uint32_t start, int i, int step) {
    HalfFragmentA out;
    load_transposed(out.high, start + step * 16 * kStride + 32 * i);
    load_transposed(out.low, start + step * 16 * kStride + 32 * i + kPlane);
    return out;
  }
  static __device__ __forceinline__ HalfFragmentB columns(uint32_t start, int j, int step) {
    HalfFragmentB out;
    load_transposed(out.value, start + step * 16 * kStride + 16 * j);
    return out;
  }
};

// The three products of a tile come one kind at a time for all tiles: one depends on the other.
enum class HalfProduct { kLowHigh, kHighLow, kHighHigh };  // smallest first

// d, or nothing where it is fresh, plus a product. Always inlined, `fresh` a constant there.
template <HalfProduct kProduct>
__device__ __forceinline__ void multiply_add_halves(float (&d)[4], const HalfFragmentA& a,
                                                    const HalfFragmentB& b, bool fresh) {
  constexpr int kFirst = kProduct == HalfProduct::kHighLow ? 2 : 0;
  const uint32_t(&of_a)[4] = kProduct == HalfProduct::kLowHigh ? a.low : a.high;
  if (fresh) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%10,%10,%10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(of_a[0]), "r"(of_a[1]), "r"(of_a[2]), "r"(of_a[3]), "r"(b.value[kFirst]),
          "r"(b.value[kFirst + 1]), "f"(0.0f));
  } else {
    mma_f16(d, of_a, b.value[kFirst], b.value[kFirst + 1]);
  }
}

}  // namespace hdetach::cuda
