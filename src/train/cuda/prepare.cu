// One thread for each (step, row) of each replica: finds its row of the minibatch again from the
// counters, which costs less than a launch that would write the rows down. The last threads draw
// the scales. Memory: a row's codes are read along the steps, so each is fetched once.
#include "op/random_bits.h"
#include "train/cuda/update.h"

namespace hdetach::train {
namespace {

constexpr int kThreads = 256;

// tasks::Sampler::minibatch, for entry n of all minibatches.
__device__ uint64_t row_of(const Replica& replica, uint64_t n) {
  if (replica.order == nullptr) return random_below(replica.minibatch_seed, n, replica.size);
  const uint64_t pass = n / replica.size, place = n - pass * replica.size;
  return replica.order[(pass % replica.passes) * replica.size + place];
}

// hdetach::sample, for one step of one layer.
__device__ float scale_of(const Replica& replica, int64_t layer, int64_t step, int64_t steps) {
  if (replica.detach == 0.0) return 1.0f;
  if (replica.damp) return static_cast<float>(1.0 - replica.detach);
  const int64_t number = (replica.separate ? layer * steps : 0) + step;
  const double u = random_uniform(replica.detach_seed, replica.drawn + 1 + number);
  return u < replica.detach ? 0.0f : 1.0f;
}

__global__ void prepare(const PrepareArgs a) {
  const int64_t r = blockIdx.y, i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i == 0) a.decisions[r].apply = 0;
  const Replica& replica = a.replicas[r];
  if (!replica.active) return;
  const int64_t cells = a.steps * a.batch;
  if (i >= cells) {
    const int64_t s = i - cells, layer = s / a.steps;
    if (layer < a.layers) {
      a.scales[r * a.layers * a.steps + s] = scale_of(replica, layer, s - layer * a.steps, a.steps);
    }
    return;
  }
  const int64_t step = i / a.batch, b = i - step * a.batch;
  const uint64_t row = row_of(replica, static_cast<uint64_t>(replica.update) * a.batch + b);
  const float* const input = replica.set.table + replica.set.codes[row * a.steps + step] * a.inputs;
  float* const x = a.x + (r * cells + i) * a.inputs;
  for (int64_t k = 0; k < a.inputs; ++k) x[k] = input[k];
  const int64_t target_step = step - (a.steps - a.target_steps);
  if (target_step >= 0) {
    a.targets[(r * a.target_steps + target_step) * a.batch + b] =
        replica.set.targets[row * a.target_steps + target_step];
  }
}

}  // namespace

void launch_prepare(const PrepareArgs& args, cudaStream_t stream) {
  const int64_t threads = args.steps * (args.batch + args.layers);
  const dim3 grid(static_cast<unsigned>((threads + kThreads - 1) / kThreads),
                  static_cast<unsigned>(args.count));
  prepare<<<grid, kThreads, 0, stream>>>(args);
}

}  // namespace hdetach::train
