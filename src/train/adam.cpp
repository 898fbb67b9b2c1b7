#include "train/adam.h"

#include <ATen/Tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <utility>

#include "kernels/cpu/flush_denormals.h"
#include "models/instruction_sets.h"

namespace hdetach::train {
namespace {

HDETACH_CLONES
double squares(const float* values, int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

struct StepSizes {
  float gradient_scale, step, root_correction;  // step = lr / (1 - beta1^t)
};

HDETACH_CLONES
void adam_step(float* weight, float* m, float* v, const float* gradient, int64_t size,
               const StepSizes& sizes) {
  const float beta1 = Adam::kBeta1, beta2 = Adam::kBeta2, epsilon = Adam::kEpsilon;
  const float rest1 = 1 - Adam::kBeta1, rest2 = 1 - Adam::kBeta2;
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float g = gradient[i] * sizes.gradient_scale;
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    weight[i] -= sizes.step * m[i] / (std::sqrt(v[i]) / sizes.root_correction + epsilon);
  }
}

}  // namespace

double global_norm(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  if (!gradients.at(0).device().is_cpu()) {
    std::vector<at::Tensor> sums;  // one wait for the device, not one for each
    for (const at::Tensor& gradient : gradients) {
      sums.push_back(gradient.to(at::kDouble).square().sum());
    }
    return std::sqrt(at::stack(sums).sum().item<double>());
  }
  for (const at::Tensor& gradient : gradients) {
    sum += squares(gradient.data_ptr<float>(), gradient.numel());
  }
  return std::sqrt(sum);
}

Adam::Adam(std::vector<at::Tensor> weights, double lr) : weights_(std::move(weights)), lr_(lr) {
  const c10::NoGradGuard no_grad;
  for (const at::Tensor& weight : weights_) {
    m_.push_back(at::zeros_like(weight));
    v_.push_back(at::zeros_like(weight));
  }
}

void Adam::step(const std::vector<at::Tensor>& gradients, double gradient_scale) {
  const FlushDenormals flush;  // squares of small gradients
  ++steps_;
  const double t = static_cast<double>(steps_);
  const StepSizes sizes{static_cast<float>(gradient_scale),
                        static_cast<float>(lr_ / (1 - std::pow(kBeta1, t))),
                        static_cast<float>(std::sqrt(1 - std::pow(kBeta2, t)))};
  const c10::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!weights_[i].device().is_cpu()) {
      const at::Tensor gradient = gradients[i].mul(gradient_scale);
      m_[i].mul_(kBeta1).add_(gradient, 1 - kBeta1);
      v_[i].mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
      weights_[i].addcdiv_(m_[i], v_[i].sqrt().div_(sizes.root_correction).add_(kEpsilon),
                           -sizes.step);
      continue;
    }
    adam_step(weights_[i].data_ptr<float>(), m_[i].data_ptr<float>(), v_[i].data_ptr<float>(),
              gradients[i].data_ptr<float>(), weights_[i].numel(), sizes);
  }
}

}  // namespace hdetach::train
