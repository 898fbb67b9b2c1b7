#include "hdetach/gradient_scales.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include "op/random_bits.h"

namespace hdetach {
namespace {

// Blocks a step when u < detach: u is in [0,1), so 0 never blocks and 1 always does.
at::Tensor draw(const GradientPolicy& policy, int64_t steps, int64_t batch,
                ScaleGenerator& generator) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const at::Tensor scale =
      policy.per_sample ? at::empty({steps, batch}, options) : at::empty({steps}, options);
  float* value = scale.data_ptr<float>();
  for (int64_t i = 0; i < scale.numel(); ++i) {
    value[i] = generator.uniform() < policy.detach ? 0.0f : 1.0f;
  }
  return scale;
}

}  // namespace

double ScaleGenerator::uniform() { return random_uniform(state_.seed, ++state_.drawn); }

GradientScales sample(const GradientPolicy& policy, int64_t steps, int64_t batch, int64_t layers,
                      ScaleGenerator& generator) {
  // Written so that NaN fails.
  TORCH_CHECK(policy.detach >= 0.0 && policy.detach <= 1.0, "[sample] detach is ", policy.detach,
              "; it must be in [0,1].");
  TORCH_CHECK(steps >= 0, "[sample] steps is ", steps, "; it must not be negative.");
  TORCH_CHECK(batch >= 0, "[sample] batch is ", batch, "; it must not be negative.");
  TORCH_CHECK(layers >= 0, "[sample] layers is ", layers, "; it must not be negative.");

  GradientScales scales{std::vector<at::Tensor>(layers), std::vector<at::Tensor>(layers)};
  if (policy.detach == 0.0) return scales;
  auto& steered = policy.path == Path::kHidden ? scales.h_scale : scales.c_scale;
  const bool separate = policy.mode == Mode::kDetach && policy.layers == LayerDraw::kSeparate;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (layer > 0 && !separate) {
      steered[layer] = steered[0];
    } else if (policy.mode == Mode::kDamp) {
      steered[layer] =
          at::full({steps}, 1.0 - policy.detach, at::TensorOptions().dtype(at::kFloat));
    } else {
      steered[layer] = draw(policy, steps, batch, generator);
    }
  }
  return scales;
}

}  // namespace hdetach
