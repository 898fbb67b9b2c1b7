// The sum over k of a 128 x 128 tile, shared by a cluster of 1, 2, 4 or 8 blocks.
//
// Strategy: a block takes a stretch of the tiles of k and leaves its accumulators in its shared
// memory. Then it adds up its own part of them over the cluster, through distributed shared memory
// and by rank, so in one order always, and finishes that part of the tile alone. Parts are dealt
// out by units: the 8 rows (i, half) of every warp.
#pragma once

#include <cooperative_groups.h>

#include "kernels/cuda/cluster_sum.cuh"
#include "kernels/cuda/gemm_tile.cuh"

namespace hdetach::cuda {

constexpr int kMostToSplit = 8;  // blocks a cluster: as many as units

struct SplitSum {
  int blocks, rank;  // of the cluster; blocks is a power of two
  int first, count;  // the block's tiles of k

  static __device__ __forceinline__ SplitSum alone(int tiles) { return {1, 0, 0, tiles}; }
  // tiles: as many as blocks, at least.
  static __device__ __forceinline__ SplitSum of_cluster(int tiles) {
    const int blocks = static_cast<int>(cooperative_groups::this_cluster().num_blocks());
    const int rank = static_cast<int>(cooperative_groups::this_cluster().block_rank());
    const int each = tiles / blocks, more = tiles % blocks;
    return {blocks, rank, rank * each + min(rank, more), each + (rank < more ? 1 : 0)};
  }

  // The cluster's tile along x.
  __device__ __forceinline__ int tile_x() const { return static_cast<int>(blockIdx.x) / blocks; }

  // Whether this block finishes that unit.
  __device__ __forceinline__ bool owns(int i, int half) const {
    return ((2 * i + half) & (blocks - 1)) == rank;
  }

  // After pipeline(), by all threads of the cluster: the units this block owns become sums over the
  // cluster. shared: kThreads * 16 quads, at the same place in all blocks.
  template <int kThreads>
  __device__ __forceinline__ void add_up(Accumulators<4, 4>& sum, float4* shared) const {
    if (blocks == 1) return;
    float4* mine = shared + threadIdx.x;  // free of bank conflicts
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float *a = sum.value[i][j] + 2 * half, *b = sum.value[i][j + 1] + 2 * half;
          mine[slot(i, j, half) * kThreads] = {a[0], a[1], b[0], b[1]};
        }
      }
    }
    cooperative_groups::this_cluster().sync();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (!owns(i, half)) continue;
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
          const float4 v =
              cluster_sum<float4>([&] { return mine + slot(i, j, half) * kThreads; }, blocks);
          sum.value[i][j][2 * half] = v.x;
          sum.value[i][j][2 * half + 1] = v.y;
          sum.value[i][j + 1][2 * half] = v.z;
          sum.value[i][j + 1][2 * half + 1] = v.w;
        }
      }
    }
    // A block must not end while another reads its shared memory.
    cooperative_groups::this_cluster().sync();
  }

 private:
  static __device__ __forceinline__ int slot(int i, int j, int half) {
    return (2 * i + half) * 2 + j / 2;
  }
};

}  // namespace hdetach::cuda
