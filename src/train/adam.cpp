#include "train/adam.h"

#include <ATen/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/cpu/flush_denormals.h"
#include "models/instruction_sets.h"
#include "op/cuda_stream.h"
#include "train/tensor_optimiser.h"

namespace hdetach::train {
namespace {

HDETACH_CLONES
double squares(const float* values, int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

HDETACH_CLONES
void adam_step(float* weight, float* m, float* v, const float* gradient, int64_t size,
               const AdamStep& sizes) {
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

const float* values(const at::Tensor& gradient, c10::DeviceType device) {
  TORCH_CHECK(gradient.defined() && gradient.device().type() == device &&
                  gradient.scalar_type() == at::kFloat && gradient.is_contiguous(),
              "[adam] a gradient is ", gradient.toString(),
              gradient.defined() && !gradient.is_contiguous() ? ", not contiguous" : "",
              "; it must be contiguous float32 on ", device, ".");
  return gradient.data_ptr<float>();
}

// What a GPU is to do with these gradients, and with weights and moments where they are given.
TensorTable table_of(const std::vector<at::Tensor>& gradients,
                     const std::vector<at::Tensor>* weights = nullptr,
                     const std::vector<at::Tensor>* m = nullptr,
                     const std::vector<at::Tensor>* v = nullptr) {
  TORCH_CHECK(static_cast<int64_t>(gradients.size()) <= TensorTable::kMost, "[adam] there are ",
              gradients.size(), " tensors; a GPU takes at most ", TensorTable::kMost, ".");
  TensorTable table;
  const auto data = [](const std::vector<at::Tensor>* list, size_t i) {
    return list == nullptr ? nullptr : (*list)[i].data_ptr<float>();
  };
  for (size_t i = 0; i < gradients.size(); ++i) {
    table.add(gradients[i].numel(), values(gradients[i], at::kCUDA), data(weights, i), data(m, i),
              data(v, i));
  }
  return table;
}

float limit(double clamp) {
  return clamp > 0 ? static_cast<float>(clamp) : std::numeric_limits<float>::infinity();
}

Measured measure_on_gpu(const at::Tensor& loss, const std::vector<at::Tensor>& gradients,
                        double clamp) {
  const c10::OptionalDeviceGuard guard(loss.device());
  const at::Tensor sums = at::empty({kMeasureBlocks * static_cast<int64_t>(sizeof(BlockSums))},
                                    at::TensorOptions(at::kByte).device(loss.device()));
  launch_tensor_measure(table_of(gradients), loss.data_ptr<float>(), limit(clamp),
                        static_cast<BlockSums*>(sums.data_ptr()), current_stream());
  const at::Tensor fetched = sums.cpu();
  const auto* const blocks = static_cast<const BlockSums*>(fetched.data_ptr());
  double sum = 0, clamped_sum = 0;
  uint32_t bits = 0;
  for (int64_t i = 0; i < kMeasureBlocks; ++i) {
    sum += blocks[i].squares;
    clamped_sum += blocks[i].clamped_squares;
    bits = std::max(bits, blocks[i].largest);
  }
  float most;
  std::memcpy(&most, &bits, sizeof(most));
  return {blocks[0].loss, std::sqrt(sum), most, std::sqrt(clamped_sum)};
}

double largest(const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> each;
  for (const at::Tensor& gradient : gradients) each.push_back(gradient.abs().max());
  return at::stack(each).max().item<double>();
}

}  // namespace

double global_norm(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients) {
    sum += squares(values(gradient, at::kCPU), gradient.numel());
  }
  return std::sqrt(sum);
}

Measured measure(const at::Tensor& loss, const std::vector<at::Tensor>& gradients, double clamp) {
  const c10::NoGradGuard no_grad;
  if (!loss.device().is_cpu()) return measure_on_gpu(loss, gradients, clamp);
  const double norm = global_norm(gradients);
  Measured out{loss.item<double>(), norm, largest(gradients), norm};
  if (clamp > 0 && out.largest > clamp) {
    std::vector<at::Tensor> clamped;
    for (const at::Tensor& gradient : gradients) clamped.push_back(gradient.clamp(-clamp, clamp));
    out.clamped_norm = global_norm(clamped);
  }
  return out;
}

Adam::Adam(std::vector<at::Tensor> weights, double lr) : weights_(std::move(weights)), lr_(lr) {
  const c10::NoGradGuard no_grad;
  for (const at::Tensor& weight : weights_) {
    m_.push_back(at::zeros_like(weight));
    v_.push_back(at::zeros_like(weight));
  }
}

void Adam::step(const std::vector<at::Tensor>& gradients, double gradient_scale, double clamp) {
  TORCH_CHECK(gradients.size() == weights_.size(), "[adam] there are ", gradients.size(),
              " gradients for ", weights_.size(), " weights.");
  for (size_t i = 0; i < weights_.size(); ++i) {
    TORCH_CHECK(gradients[i].numel() == weights_[i].numel(), "[adam] gradient ", i, " has ",
                gradients[i].numel(), " numbers, its weight ", weights_[i].numel(), ".");
  }
  const FlushDenormals flush;  // squares of small gradients
  ++steps_;
  const double t = static_cast<double>(steps_);
  const AdamStep sizes{static_cast<float>(gradient_scale),
                       static_cast<float>(lr_ / (1 - std::pow(kBeta1, t))),
                       static_cast<float>(std::sqrt(1 - std::pow(kBeta2, t)))};
  const c10::NoGradGuard no_grad;
  const at::Device device = weights_.at(0).device();
  if (!device.is_cpu()) {
    const c10::OptionalDeviceGuard guard(device);
    launch_tensor_adam(table_of(gradients, &weights_, &m_, &v_), limit(clamp), sizes,
                       current_stream());
    return;
  }
  for (size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor gradient = clamp > 0 ? gradients[i].clamp(-clamp, clamp) : gradients[i];
    adam_step(weights_[i].data_ptr<float>(), m_[i].data_ptr<float>(), v_[i].data_ptr<float>(),
              values(gradient, at::kCPU), weights_[i].numel(), sizes);
  }
}

}  // namespace hdetach::train
