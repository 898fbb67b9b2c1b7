// The tensor core instructions the kernels are made of, and how a float is split for them so that
// the product of two floats keeps the error of a float.
//
// Fragments (PTX ISA, mma.m16n8k16 and .m16n8k8; group = lane / 4, quad = lane % 4):
//   D[16,8]   d0,d1: row group, columns 2*quad, 2*quad+1;  d2,d3: row group+8, the same columns
//   f16  A[16,16]  a0: row group, k 2*quad,+1   a1: row group+8   a2, a3: the same rows, k + 8
//   f16  B[16,8]   b0: column group, k 2*quad,+1   b1: k + 8
//   tf32 A[16,8]   a0: row group, k quad   a1: row group+8   a2, a3: the same rows, k + 4
//   tf32 B[8,8]    b0: column group, k quad   b1: k + 4
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace hdetach::cuda {

__device__ __forceinline__ void mma_f16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                        uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The power of two that brings `largest` into [2^p, 2^(p+1)), and at most 2^111, so that the
// inverse of a product of two scales is a normal number.
__device__ __forceinline__ float scale_to_power(float largest, uint32_t p) {
  const uint32_t exponent = __float_as_uint(largest) >> 23;
  return __uint_as_float(min(254u + p - exponent, 238u) << 23);
}
__device__ __forceinline__ float inverse_power(float scale) {
  return __uint_as_float((254u << 23) - __float_as_uint(scale));
}

// Two floats as two pairs of halves, x = high + low to 2^-24 of x, as long as x lies in half's
// range: the caller scales by a power of two.
struct HalfPairs {
  uint32_t high, low;
};
__device__ __forceinline__ HalfPairs split_f16(float first, float second) {
  const __half2 high = __floats2half2_rn(first, second);
  const float2 back = __half22float2(high);
  const __half2 low = __floats2half2_rn(first - back.x, second - back.y);
  return {*reinterpret_cast<const uint32_t*>(&high), *reinterpret_cast<const uint32_t*>(&low)};
}

// A float as two tf32, any range: high*high + high*low + low*high is the product. The tensor core
// ignores the last 13 bits of what it reads; high is rounded to nearest, since truncation would
// make every product too small, and low, the exact rest, loses 2^-22 of x at most.
struct Tf32Pair {
  uint32_t high, low;
};
__device__ __forceinline__ Tf32Pair split_tf32(float x) {
  const uint32_t high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  return {high, __float_as_uint(x - __uint_as_float(high))};
}

}  // namespace hdetach::cuda
