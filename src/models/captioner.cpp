#include "models/captioner.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "models/show_tell.h"
#include "models/soft_attention.h"
#include "op/random_bits.h"

namespace hdetach {

at::Tensor Captioner::add(const std::string& name, at::IntArrayRef sizes, double bound,
                          const at::Device& device) {
  const at::Tensor zeros = at::zeros(sizes, at::TensorOptions(at::kFloat).device(device));
  parameters_.push_back({name, zeros.set_requires_grad(true)});
  bounds_.push_back(bound);
  return parameters_.back().tensor;
}

void Captioner::init(uint64_t seed) {
  const c10::NoGradGuard no_grad;
  uint64_t n = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    // Drawn on the CPU, wherever the model lies: the same numbers everywhere.
    const at::Tensor drawn = at::empty(parameter.sizes(), at::kFloat);
    float* const value = drawn.data_ptr<float>();
    for (int64_t j = 0; j < drawn.numel(); ++j) {
      value[j] = static_cast<float>((2 * random_uniform(seed, n++) - 1) * bounds_[i]);
    }
    parameter.copy_(drawn);
  }
}

std::unique_ptr<Captioner> make_captioner(const std::string& kind, const CaptionerShape& shape,
                                          const at::Device& device) {
  if (kind == "show-tell") return std::make_unique<ShowTell>(shape, device);
  TORCH_CHECK(kind == "soft-attention", "[captioner] kind is \"", kind,
              "\"; it must be show-tell or soft-attention.");
  return std::make_unique<SoftAttention>(shape, device);
}

}  // namespace hdetach
