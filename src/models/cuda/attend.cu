// Strategy: a block a row. Its scores, their softmax and its context need no other row, so a step
// of attention is one launch each way; the tanh of all positions is made again on the way back
// rather than kept. Every sum has a fixed order.
//
// Floor of Soft Attention's step (50 rows, 49 positions, 512 and 2048 numbers each): 25 MB are read
// forward, 36 MB are read or written backward.
#include "kernels/cuda/check.h"
#include "models/cuda/attend.h"

namespace hdetach::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kAtOnce = 4;  // sums of a thread side by side: so many loads are under way

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}
__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

// By one warp.
__device__ void softmax(float* values, int count, int lane) {
  float most = values[0];
  for (int p = lane; p < count; p += 32) most = fmaxf(most, values[p]);
  most = warp_max(most);
  float sum = 0.0f;
  for (int p = lane; p < count; p += 32) {
    values[p] = expf(values[p] - most);
    sum += values[p];
  }
  sum = warp_sum(sum);
  for (int p = lane; p < count; p += 32) values[p] /= sum;
}

__global__ void __launch_bounds__(kThreads) forward(AttendForward a) {
  extern __shared__ float attention[];  // [positions]
  const int64_t row = blockIdx.x;
  const int positions = static_cast<int>(a.shape.positions), size = static_cast<int>(a.shape.size),
            channels = static_cast<int>(a.shape.channels),
            embedding = static_cast<int>(a.shape.embedding);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* const projected = a.projected + row * positions * size;
  const float* const query = a.query + row * size;
  const float* const weight = a.weight + row * size;
  const float* const features = a.features + row * positions * channels;
  float* const x = a.x + row * (embedding + channels);

  for (int p = warp; p < positions; p += kWarps) {
    const float* const line = projected + static_cast<int64_t>(p) * size;
    float score = 0.0f;
#pragma unroll 4
    for (int i = lane; i < size; i += 32) score += weight[i] * tanhf(line[i] + query[i]);
    score = warp_sum(score);
    if (lane == 0) attention[p] = score;
  }
  __syncthreads();
  if (warp == 0) softmax(attention, positions, lane);
  for (int i = threadIdx.x; i < embedding; i += kThreads) x[i] = a.words[row * embedding + i];
  __syncthreads();
  for (int p = threadIdx.x; p < positions; p += kThreads) {
    a.attention[row * positions + p] = attention[p];
  }
  for (int first = threadIdx.x; first < channels; first += kAtOnce * kThreads) {
    float sum[kAtOnce] = {};
#pragma unroll 4
    for (int p = 0; p < positions; ++p) {
      const float* const line = features + static_cast<int64_t>(p) * channels;
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int c = first + k * kThreads;
        if (c < channels) sum[k] += attention[p] * line[c];
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int c = first + k * kThreads;
      if (c < channels) x[embedding + c] = sum[k];
    }
  }
}

// What the loss's slope is along each score, from the slopes along the attention, by one warp.
__device__ void through_softmax(float* slope, const float* attention, int count, int lane) {
  float sum = 0.0f;
  for (int p = lane; p < count; p += 32) sum += attention[p] * slope[p];
  sum = warp_sum(sum);
  for (int p = lane; p < count; p += 32) slope[p] = attention[p] * (slope[p] - sum);
}

__global__ void __launch_bounds__(kThreads) backward(AttendBackward a) {
  extern __shared__ float slope[];  // [positions]: of the loss, along the attention, then the score
  const int64_t row = blockIdx.x;
  const int positions = static_cast<int>(a.shape.positions), size = static_cast<int>(a.shape.size),
            channels = static_cast<int>(a.shape.channels);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* const features = a.features + row * positions * channels;
  const float* const dcontext = a.dx + row * (a.shape.embedding + channels) + a.shape.embedding;

  for (int first = warp; first < positions; first += kAtOnce * kWarps) {
    float sum[kAtOnce] = {};
#pragma unroll 4
    for (int c = lane; c < channels; c += 32) {
      const float d = dcontext[c];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int p = first + k * kWarps;
        if (p < positions) sum[k] += d * features[static_cast<int64_t>(p) * channels + c];
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int p = first + k * kWarps;
      const float total = warp_sum(sum[k]);
      if (lane == 0 && p < positions) slope[p] = total;
    }
  }
  __syncthreads();
  if (warp == 0) through_softmax(slope, a.attention + row * positions, positions, lane);
  __syncthreads();

  const float* const __restrict__ projected = a.projected + row * positions * size;
  float* const __restrict__ dprojected = a.dprojected + row * positions * size;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const float query = a.query[row * size + i], weight = a.weight[row * size + i];
    float dquery = 0.0f, dweight = 0.0f;
#pragma unroll 8
    for (int p = 0; p < positions; ++p) {
      const int64_t at = static_cast<int64_t>(p) * size + i;
      const float match = tanhf(projected[at] + query);
      const float inner = slope[p] * weight * (1.0f - match * match);
      dquery += inner;
      dweight += slope[p] * match;
      dprojected[at] += inner;
    }
    a.dquery[row * size + i] = dquery;
    a.dweight[row * size + i] += dweight;
  }
}

template <typename Kernel, typename Args>
void launch(Kernel kernel, const Args& args, void* stream) {
  const size_t bytes = static_cast<size_t>(args.shape.positions) * sizeof(float);
  kernel<<<static_cast<unsigned>(args.shape.rows), kThreads, bytes,
           static_cast<cudaStream_t>(stream)>>>(args);
  check(cudaGetLastError(), "launch of attention");
}

}  // namespace

void attend_forward(const AttendForward& args, void* stream) { launch(forward, args, stream); }

void attend_backward(const AttendBackward& args, void* stream) { launch(backward, args, stream); }

}  // namespace hdetach::cuda
