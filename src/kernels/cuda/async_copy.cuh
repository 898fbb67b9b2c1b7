// Copies from device memory to shared memory that run while the thread works on. A thread that
// reads only what it copied itself needs no barrier: waiting for its own group is enough.
#pragma once

#include <cstdint>

namespace hdetach::cuda {

// Copies kBytes (4, 8 or 16, both sides aligned to it), or writes zeros when `wanted` is false.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool wanted = true) {
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = wanted ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}

__device__ __forceinline__ void close_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Returns when at most `kPending` of this thread's latest groups are still on their way.
template <int kPending>
__device__ __forceinline__ void wait_copy_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace hdetach::cuda
