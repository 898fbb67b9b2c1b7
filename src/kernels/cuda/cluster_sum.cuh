// What the blocks of a cluster have at one place of their shared memory, added up by rank: in one
// order always.
#pragma once

#include <cstdint>

namespace hdetach::cuda {

// Where another block has what this one has at `mine`.
__device__ __forceinline__ uint32_t address_in_peer(const void* mine, int block) {
  const auto here = static_cast<uint32_t>(__cvta_generic_to_shared(mine));
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(block));
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

// T: float or float4. mine() says where this block has its own; it is asked at every load, so that
// no register holds the answer meanwhile.
template <typename T, typename Mine>
__device__ __forceinline__ T cluster_sum(const Mine& mine, int blocks) {
  constexpr int kAtOnce = 4;  // loads under way; more do not fit the registers
  T sum = {};
#pragma unroll 1
  for (int first = 0; first < blocks; first += kAtOnce) {
    T part[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      part[i] = {};
      if (first + i < blocks) load_peer(part[i], address_in_peer(mine(), first + i));
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) add(sum, part[i]);
  }
  return sum;
}

}  // namespace hdetach::cuda
