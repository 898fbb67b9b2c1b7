// How the blocks of a cluster pass data on: mailboxes in every block's shared memory, two for each
// reader, filled in turn. Words travel as st.async, which count themselves at the reader's mbarrier
// when they arrive; nobody waits for a barrier of the whole cluster.
//
// A mailbox is filled anew only by senders that have heard from its reader since, in both sweeps:
// one wait an exchange is enough.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "kernels/cuda/mbarrier.cuh"
#include "kernels/cuda/resident_layout.cuh"

namespace hdetach::cuda {

// kReaders in a block, each of whom is sent kBytes an exchange. One thread of each reader, `lead`,
// keeps its barriers.
template <class L, int kReaders, int kBytes>
class Exchange {
 public:
  static constexpr int kSharedBytes = 2 * kReaders * (kBytes + 8);

  // All threads of the cluster must call this.
  __device__ Exchange(char* shared, int reader, bool lead)
      : shared_(shared), reader_(reader), lead_(lead) {
    const uint32_t here = shared_address(shared);
#pragma unroll
    for (int rank = 0; rank < L::kCluster; ++rank) {
      asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_[rank]) : "r"(here), "r"(rank));
    }
    if (lead_) {
      for (int i = 0; i < 2; ++i) mbarrier_init<1>(here + barrier(i));
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cooperative_groups::this_cluster().sync();
    if (lead_) {
      for (int i = 0; i < 2; ++i) arm(i);
    }
  }

  // A word for exchange number `count` (from 0), at `word` of the mailbox of the reader with this
  // thread's number in block `rank`.
  __device__ __forceinline__ void send(uint32_t count, int rank, int word, uint32_t value) {
    const int box = count & 1;
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %2, [%1];" ::"r"(
            there_[rank] + mailbox(box) + word * 4),
        "r"(there_[rank] + barrier(box)), "r"(value)
        : "memory");
  }

  // This thread's mailbox, once everything sent to it in that exchange is there.
  __device__ __forceinline__ const char* receive(uint32_t count) {
    const int box = count & 1;
    mbarrier_wait(shared_address(shared_) + barrier(box), (count >> 1) & 1);
    if (lead_) arm(box);  // for the next time
    return shared_ + mailbox(box);
  }

  // Before a block ends: others may still write to its memory.
  __device__ void finish() { cooperative_groups::this_cluster().sync(); }

 private:
  __device__ int mailbox(int box) const { return (box * kReaders + reader_) * kBytes; }
  __device__ int barrier(int box) const {
    return 2 * kReaders * kBytes + (box * kReaders + reader_) * 8;
  }
  __device__ void arm(int box) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(shared_) + barrier(box)),
                 "r"(kBytes)
                 : "memory");
  }

  char* shared_;
  int reader_;
  bool lead_;
  uint32_t there_[L::kCluster];  // shared_ of every block
};

}  // namespace hdetach::cuda
