// Stages of shared memory that some warps fill and others empty, in turn. Two mbarriers a stage say
// which it is: nobody waits for the whole block.
#pragma once

#include <cstdint>

namespace hdetach::cuda {

template <int kStages>
class StageRing {
 public:
  // Where a filler or an emptier is. It starts at the stage with its first number.
  struct Place {
    int stage;
    uint32_t round = 0;  // how often all stages were gone through before
    __device__ void advance(int by) {
      stage += by;
      if (stage < kStages) return;
      stage -= kStages;
      ++round;
    }
  };

  // By one thread, before a barrier of the block. So many arrivals make a stage full or empty.
  __device__ void start(int fillers, int emptiers) {
    for (int i = 0; i < kStages; ++i) {
      init(full_ + i, fillers);
      init(empty_ + i, emptiers);
    }
  }
  __device__ void wait_until_full(const Place& at) { wait(full_ + at.stage, at.round & 1); }
  // All are empty before the first round: to a barrier that is the end of a phase before it.
  __device__ void wait_until_empty(const Place& at) { wait(empty_ + at.stage, ~at.round & 1); }
  __device__ void say_full(const Place& at) { arrive(full_ + at.stage); }
  __device__ void say_empty(const Place& at) { arrive(empty_ + at.stage); }

 private:
  static __device__ uint32_t address(const uint64_t* barrier) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  }
  static __device__ void init(const uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals)
                 : "memory");
  }
  static __device__ __forceinline__ void arrive(const uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
  }
  static __device__ __forceinline__ void wait(const uint64_t* barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
      asm volatile(
          "{\n"
          ".reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n"
          "}"
          : "=r"(done)
          : "r"(address(barrier)), "r"(parity)
          : "memory");
    }
  }

  uint64_t full_[kStages], empty_[kStages];
};

}  // namespace hdetach::cuda
