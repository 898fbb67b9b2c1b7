// The recurrent product of one step, as both directions need it: [64 rows, K] x [K, kColumns batch
// rows] in a cluster of blocks that share K.
//
// Strategy: few batch rows and 132 SMs, so the sum over K is what there is to share. Within a block
// two or four groups of warps take turns at 8 of k; a cluster of up to eight blocks takes a stretch
// of K each and adds up through distributed shared memory. Blocks then finish an equal part of the
// tile's columns. Copies of weights start before the step before has ended.
#pragma once

#include <cooperative_groups.h>

#include "kernels/cuda/cluster_sum.cuh"
#include "kernels/cuda/gemm_tile.cuh"

namespace hdetach::cuda {

constexpr int kStepThreads = 256, kLargestCluster = 8;

// What a launch may do before the one it depends on has ended, and when the next may start.
__device__ __forceinline__ void wait_for_launch_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void let_next_launch_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Weights: AlongK<64> or AcrossK<64>, the tile of w_hh.
template <typename Weights, int kColumns_>
class StepProduct {
 public:
  static constexpr int kRows = 64, kColumns = kColumns_, kStages = 6;
  using States = AlongK<kColumns>;

 private:
  static constexpr int kStageFloats = Weights::kFloats + States::kFloats;
  static constexpr int kPlaces = 2 * (kColumns / 32);  // warps side by side, 32 x 32 each
  static constexpr int kGroups = kStepThreads / 32 / kPlaces;
  static constexpr int kPartFloats = (kGroups - 1) * kRows * kColumns;
  static constexpr int kSumStride = kRows + 4;
  static_assert(kPartFloats + kColumns * kSumStride <= kStages * kStageFloats,
                "sums fit the stages");

 public:
  static constexpr int kSharedBytes = kStages * kStageFloats * static_cast<int>(sizeof(float));

  // The block's stretch of the tiles of k.
  __device__ StepProduct(float* shared, int k)
      : shared_(shared),
        blocks_(static_cast<int>(cluster().num_blocks())),
        rank_(static_cast<int>(cluster().block_rank())) {
    const int tiles = (k + kTileK - 1) / kTileK, each = (tiles + blocks_ - 1) / blocks_;
    first_ = min(tiles, rank_ * each);
    count_ = min(tiles, first_ + each) - first_;
  }

  // The part of the columns that this block finishes.
  __device__ int own_columns() const { return kColumns / blocks_; }
  __device__ int first_own_column() const { return rank_ * own_columns(); }

  // fill_weights(tile, first k) copies a tile of weights.
  template <typename FillWeights>
  __device__ __forceinline__ void start(const FillWeights& fill_weights) const {
#pragma unroll 1
    for (int tile = 0; tile < kStages - 1 && tile < count_; ++tile) {
      fill_weights(shared_ + tile * kStageFloats, (first_ + tile) * kTileK);
    }
  }

  // After start(), by all blocks of the cluster.
  template <typename FillWeights, typename FillStates>
  __device__ __forceinline__ void run(const FillWeights& fill_weights,
                                      const FillStates& fill_states) const {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int place = warp % kPlaces, group = warp / kPlaces;
    const int row = place % 2 * 32, column = place / 2 * 32;
    Accumulators<2, 4> sum;
    pipeline<kStages>(
        count_,
        [&](int stage, int tile) {
          float* weights = shared_ + stage * kStageFloats;
          const int k = (first_ + tile) * kTileK;
          if (tile >= kStages - 1) fill_weights(weights, k);  // the others by start()
          fill_states(weights + Weights::kFloats, k);
        },
        [&](int stage, int) {
          const float* weights = shared_ + stage * kStageFloats;
#pragma unroll 1
          for (int i = 0; i < kTileK / 8 / kGroups; ++i) {
            const int step = i * kGroups + group;
            multiply_add(
                sum, Weights::template rows<2>(weights, row, step, lane),
                States::template columns<4>(weights + Weights::kFloats, column, step, lane));
          }
        });

    // The groups' sums, in order, into the first group's, and from there into a plain tile.
    float4* parts = reinterpret_cast<float4*>(shared_);
    const auto part = [&](int of_group, int i, int j) -> float4& {
      return parts[(((of_group - 1) * kPlaces + place) * 8 + i * 4 + j) * 32 + lane];
    };
    if (group > 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float* v = sum.value[i][j];
          part(group, i, j) = {v[0], v[1], v[2], v[3]};
        }
      }
    }
    __syncthreads();
    if (group == 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          float* v = sum.value[i][j];
#pragma unroll
          for (int other = 1; other < kGroups; ++other) {
            const float4 theirs = part(other, i, j);
            v[0] += theirs.x;
            v[1] += theirs.y;
            v[2] += theirs.z;
            v[3] += theirs.w;
          }
        }
      }
      write_sums(sum, row, column, lane);
    }
    synchronize();
  }

  // After run(): elements row .. row + 3 of a column, summed over the cluster in order.
  __device__ __forceinline__ float4 total4(int row, int column) const {
    return cluster_sum<float4>([&] { return sums(row, column); }, blocks_);
  }
  __device__ __forceinline__ float total(int row, int column) const {
    return cluster_sum<float>([&] { return sums(row, column); }, blocks_);
  }

  // After the last total(): a block must not end while another reads its shared memory.
  __device__ void finish() const {
    if (blocks_ > 1) cluster().sync();
  }

 private:
  static __device__ __forceinline__ cooperative_groups::cluster_group cluster() {
    return cooperative_groups::this_cluster();
  }
  // The tile's sums, a line per column: free of bank conflicts however they are read and written.
  __device__ __forceinline__ float* sums(int row, int column) const {
    return shared_ + kPartFloats + column * kSumStride + row;
  }
  __device__ __forceinline__ void write_sums(const Accumulators<2, 4>& sum, int first_row,
                                             int first_column, int lane) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = first_column + States::template column<4>(j, e, lane);
        float v[4];
#pragma unroll
        for (int n = 0; n < 4; ++n) v[n] = sum.value[n / 2][j][n % 2 * 2 + e];
        if constexpr (Weights::kNeighbouringRows) {
          *reinterpret_cast<float4*>(sums(first_row + Weights::row(0, 0, lane), column)) = {
              v[0], v[1], v[2], v[3]};
        } else {
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            *sums(first_row + Weights::row(n / 2, n % 2, lane), column) = v[n];
          }
        }
      }
    }
  }
  __device__ void synchronize() const {
    if (blocks_ > 1) {
      cluster().sync();
    } else {
      __syncthreads();
    }
  }

  float* shared_;
  int blocks_, rank_, first_, count_;
};

}  // namespace hdetach::cuda
