// tensor_optimiser.h: a block takes a piece of one tensor. Measuring has a fixed number of blocks,
// whatever the GPU, so that the host has few sums to fetch and add; each goes on to another piece.
#include "train/tensor_optimiser.h"

#include <cuda_runtime.h>

#include "kernels/cuda/check.h"
#include "train/cuda/optimiser.cuh"

namespace hdetach::train {
namespace {

// NaN stays NaN.
__device__ float clamped(float value, float clamp) {
  return value > clamp ? clamp : value < -clamp ? -clamp : value;
}

// The tensor of a piece, not before the one at `from`.
__device__ int64_t tensor_of(const TensorTable& table, int64_t piece, int64_t from) {
  while (from + 1 < table.count && table.entries[from + 1].first_piece <= piece) ++from;
  return from;
}

struct Stretch {
  int64_t first;
  int count;
};

__device__ Stretch stretch_of(const TensorTable::Entry& tensor, int64_t piece) {
  const int64_t first = (piece - tensor.first_piece) * TensorTable::kPiece;
  return {first, static_cast<int>(min(tensor.size - first, TensorTable::kPiece))};
}

__device__ unsigned block_max(unsigned value) {  // valid in thread 0
  __shared__ unsigned shared[kWarps];
  value = __reduce_max_sync(~0u, value);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  unsigned most = 0;
  for (int w = 0; w < kWarps; ++w) most = max(most, shared[w]);
  return most;
}

__global__ void __launch_bounds__(kThreads)
    measure_tensors(const __grid_constant__ TensorTable table, const float* loss, float clamp,
                    BlockSums* sums) {
  __shared__ double shared[kWarps];
  double squares = 0, clamped_squares = 0;
  unsigned largest = 0;
  int64_t t = 0;
  for (int64_t piece = blockIdx.x; piece < table.pieces; piece += kMeasureBlocks) {
    t = tensor_of(table, piece, t);
    const Stretch stretch = stretch_of(table.entries[t], piece);
    const float* const gradient = table.entries[t].gradient + stretch.first;
#pragma unroll 8
    for (int i = threadIdx.x; i < stretch.count; i += kThreads) {
      const float g = gradient[i], c = clamped(g, clamp);
      squares += static_cast<double>(g) * g;
      clamped_squares += static_cast<double>(c) * c;
      largest = max(largest, __float_as_uint(g) & 0x7fffffff);
    }
  }
  squares = block_sum(squares, shared);
  clamped_squares = block_sum(clamped_squares, shared);
  largest = block_max(largest);
  if (threadIdx.x == 0) sums[blockIdx.x] = {squares, clamped_squares, largest, *loss};
}

__global__ void __launch_bounds__(kThreads)
    adam_tensors(const __grid_constant__ TensorTable table, float clamp, const AdamStep step) {
  const TensorTable::Entry& tensor = table.entries[tensor_of(table, blockIdx.x, 0)];
  const Stretch stretch = stretch_of(tensor, blockIdx.x);
  const float* const gradient = tensor.gradient + stretch.first;
  float* const weight = tensor.weight + stretch.first;
  float* const first_moment = tensor.first_moment + stretch.first;
  float* const second_moment = tensor.second_moment + stretch.first;
  for (int i = threadIdx.x; i < stretch.count; i += kThreads) {
    const float g = clamped(gradient[i], clamp) * step.gradient_scale;
    float m = first_moment[i], v = second_moment[i], w = weight[i];
    adam_rule(g, step.step, step.root_correction, m, v, w);
    first_moment[i] = m;
    second_moment[i] = v;
    weight[i] = w;
  }
}

}  // namespace

void launch_tensor_measure(const TensorTable& table, const float* loss, float clamp,
                           BlockSums* sums, void* stream) {
  measure_tensors<<<kMeasureBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(table, loss,
                                                                                      clamp, sums);
  cuda::check(cudaGetLastError(), "measure_tensors");
}

void launch_tensor_adam(const TensorTable& table, float clamp, const AdamStep& step, void* stream) {
  if (table.pieces == 0) return;
  adam_tensors<<<static_cast<unsigned>(table.pieces), kThreads, 0,
                 static_cast<cudaStream_t>(stream)>>>(table, clamp, step);
  cuda::check(cudaGetLastError(), "adam_tensors");
}

}  // namespace hdetach::train
