// Inputs of a stretch of an evaluation, and the scores of its hidden states: a warp for each
// sequence, step after step. A sequence's loss is added up in the order of its steps, so it does
// not depend on how they were cut into stretches.
#include "train/cuda/score.h"

namespace hdetach::train {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

__global__ void gather(const StretchArgs a) {
  const int64_t r = blockIdx.y, cells = a.steps * a.rows;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= cells) return;
  const int64_t step = i / a.rows, row = a.first_row + i - step * a.rows;
  const SetView set = a.sets[r];
  const float* const input = set.table + set.codes[row * a.all_steps + a.begin + step] * a.inputs;
  float* const x = a.x + (r * cells + i) * a.inputs;
  for (int64_t k = 0; k < a.inputs; ++k) x[k] = input[k];
}

__global__ void __launch_bounds__(kThreads) score(const ScoreArgs a) {
  const int64_t r = blockIdx.y;
  const int64_t b = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (b >= a.rows) return;
  const int lane = threadIdx.x % 32, classes = static_cast<int>(a.classes);
  const float* const weight = a.weight + r * a.classes * a.hidden;
  const float* const bias = a.bias + r * a.classes;
  const uint8_t* const targets = a.sets[r].targets + (a.first_row + b) * a.target_steps;
  const int64_t at = r * a.size + a.first_row + b;
  double loss = a.losses[at];
  int correct = a.correct[at];
  for (int64_t step = a.from; step < a.steps; ++step) {
    const float* const h = a.h + ((r * a.steps + step) * a.rows + b) * a.hidden;
    float logit[kMostClasses] = {};
    for (int64_t i = lane; i < a.hidden; i += 32) {
      const float value = h[i];
#pragma unroll
      for (int k = 0; k < kMostClasses; ++k) {
        if (k < classes) logit[k] = fmaf(value, weight[k * a.hidden + i], logit[k]);
      }
    }
    float most = -INFINITY;
    int best = 0;
#pragma unroll
    for (int k = 0; k < kMostClasses; ++k) {
      if (k >= classes) break;
      for (int part = 16; part > 0; part /= 2) logit[k] += __shfl_xor_sync(~0u, logit[k], part);
      logit[k] += bias[k];
      if (logit[k] > most) best = k;
      most = fmaxf(most, logit[k]);
    }
    const int64_t target_step = a.begin + step - (a.all_steps - a.target_steps);
    const int target = targets[target_step];
    float sum = 0, wanted = 0;
#pragma unroll
    for (int k = 0; k < kMostClasses; ++k) {
      if (k >= classes) break;
      if (k == target) wanted = logit[k] - most;
      sum += expf(logit[k] - most);
    }
    loss += logf(sum) - wanted;
    correct += a.begin + step >= a.first_scored && best == target;
  }
  if (lane != 0) return;
  a.losses[at] = loss;
  a.correct[at] = correct;
}

}  // namespace

void launch_gather(const StretchArgs& args, cudaStream_t stream) {
  const int64_t cells = args.steps * args.rows;
  const dim3 grid(static_cast<unsigned>((cells + kThreads - 1) / kThreads),
                  static_cast<unsigned>(args.count));
  gather<<<grid, kThreads, 0, stream>>>(args);
}

void launch_score(const ScoreArgs& args, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((args.rows + kWarps - 1) / kWarps),
                  static_cast<unsigned>(args.count));
  score<<<grid, kThreads, 0, stream>>>(args);
}

}  // namespace hdetach::train
