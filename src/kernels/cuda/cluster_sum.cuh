// What the blocks of a cluster have at one place of their shared memory, added up by rank: in one
// order always.
#pragma once

#include <cstdint>

namespace hdetach::cuda {

// That place, in a block's own shared memory, as all of the cluster can address it.
__device__ __forceinline__ uint32_t address_in_peer(uint32_t own, int block) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(block));
  return there;
}

__device__ __forceinline__ void load_peer(float4& v, uint32_t there) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(there)
               : "memory");
}
__device__ __forceinline__ void load_peer(float& v, uint32_t there) {
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");
}

__device__ __forceinline__ void add(float4& sum, const float4& v) {
  sum.x += v.x;
  sum.y += v.y;
  sum.z += v.z;
  sum.w += v.w;
}
__device__ __forceinline__ void add(float& sum, float v) { sum += v; }

template <typename T>  // float or float4
__device__ __forceinline__ T cluster_sum(uint32_t own, int blocks) {
  constexpr int kAtOnce = 4;  // loads under way; more do not fit the registers
  T sum = {};
#pragma unroll 1
  for (int first = 0; first < blocks; first += kAtOnce) {
    T part[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      part[i] = {};
      if (first + i < blocks) load_peer(part[i], address_in_peer(own, first + i));
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) add(sum, part[i]);
  }
  return sum;
}

}  // namespace hdetach::cuda
