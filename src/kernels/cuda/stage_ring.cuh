// Stages of shared memory that some warps fill and others empty, in turn. Two mbarriers a stage say
// which it is: nobody waits for the whole block.
#pragma once

#include <cstdint>

#include "kernels/cuda/mbarrier.cuh"

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
  template <int kFillers, int kEmptiers>
  __device__ void start() {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init<kFillers>(shared_address(full_ + i));
      mbarrier_init<kEmptiers>(shared_address(empty_ + i));
    }
  }
  __device__ void wait_until_full(const Place& at) { wait(full_ + at.stage, at.round & 1); }
  // All are empty before the first round: to a barrier that is the end of a phase before it.
  __device__ void wait_until_empty(const Place& at) { wait(empty_ + at.stage, ~at.round & 1); }
  __device__ void say_full(const Place& at) { arrive(full_ + at.stage); }
  __device__ void say_empty(const Place& at) { arrive(empty_ + at.stage); }

 private:
  static __device__ __forceinline__ void arrive(const uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
  }
  static __device__ __forceinline__ void wait(const uint64_t* barrier, uint32_t parity) {
    mbarrier_wait(shared_address(barrier), parity);
  }

  uint64_t full_[kStages], empty_[kStages];
};

}  // namespace hdetach::cuda
