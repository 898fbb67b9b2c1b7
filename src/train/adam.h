// Clipping and Adam in two sweeps over the weights, with the arithmetic of torch::optim::Adam.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/adam_rule.h"

namespace hdetach::train {

// The norm of all gradients together, summed in double: the squares of an exploding run overflow
// float32, and a clip factor of 0 would freeze the run for good.
double global_norm(const std::vector<at::Tensor>& gradients);

class Adam : public AdamRule {
 public:
  // `weights` are float32 and contiguous, on one device; they are changed in place.
  Adam(std::vector<at::Tensor> weights, double lr);

  void step(const std::vector<at::Tensor>& gradients, double gradient_scale);

  // To checkpoint: the moments in the order of the weights, and the number of steps so far.
  const std::vector<at::Tensor>& first_moments() const { return m_; }
  const std::vector<at::Tensor>& second_moments() const { return v_; }
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  std::vector<at::Tensor> weights_, m_, v_;
  double lr_;
  int64_t steps_ = 0;
};

}  // namespace hdetach::train
