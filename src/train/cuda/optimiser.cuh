// What the optimisers of replicas (optimiser.cu) and of tensors (tensor_optimiser.cu) are made of:
// the sum over a block and Adam's rule for one weight.
#pragma once

#include "train/adam_rule.h"

namespace hdetach::train {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// The sum over the block, in an order that never changes; valid in thread 0.
__device__ inline double block_sum(double value, double* shared) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  __syncthreads();  // shared may be in use from the sum before
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared[w];
  return sum;
}

// `gradient` is scaled already; step and root_correction as in adam.cpp.
__device__ inline void adam_rule(float gradient, float step, float root_correction, float& first,
                                 float& second, float& weight) {
  constexpr float beta1 = AdamRule::kBeta1, beta2 = AdamRule::kBeta2, epsilon = AdamRule::kEpsilon,
                  rest1 = 1 - AdamRule::kBeta1, rest2 = 1 - AdamRule::kBeta2;
  const float m = beta1 * first + rest1 * gradient;
  const float v = beta2 * second + rest2 * gradient * gradient;
  first = m;
  second = v;
  weight -= step * m / (sqrtf(v) / root_correction + epsilon);
}

}  // namespace hdetach::train
