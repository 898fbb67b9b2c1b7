// Clipping and Adam in two sweeps over the weights, with the arithmetic of torch::optim::Adam.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/adam_rule.h"

namespace hdetach::train {

// The norm of all gradients together, which are on the CPU, summed in double: the squares of an
// exploding run overflow float32, and a clip factor of 0 would freeze the run for good.
double global_norm(const std::vector<at::Tensor>& gradients);

struct Measured {
  double loss;
  double norm;          // global_norm
  double largest;       // magnitude of a number of the gradients
  double clamped_norm;  // with each number brought to -clamp .. clamp
};

// All that must be known before a step, on either device, in one wait for it. A NaN makes the norm
// and the largest NaN. clamp 0: any number. `loss` is one float32, gradients are as for Adam::step.
Measured measure(const at::Tensor& loss, const std::vector<at::Tensor>& gradients, double clamp);

class Adam : public AdamRule {
 public:
  // `weights` are float32 and contiguous, on one device; they are changed in place. A GPU takes at
  // most TensorTable::kMost of them.
  Adam(std::vector<at::Tensor> weights, double lr);

  // `gradients` are as the weights are. Each of their numbers is brought to -clamp .. clamp (0:
  // left as it is), then scaled.
  void step(const std::vector<at::Tensor>& gradients, double gradient_scale, double clamp = 0);

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
