#include "models/sequence_classifier.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "op/random_bits.h"

namespace hdetach {
namespace {

LSTMOptions lstm_options(int64_t inputs, int64_t hidden, int64_t layers,
                         const GradientPolicy& policy, uint64_t seed) {
  return LSTMOptions(inputs, hidden).num_layers(layers).policy(policy).seed(seed);
}

}  // namespace

SequenceClassifier::SequenceClassifier(int64_t inputs, int64_t hidden, int64_t layers,
                                       int64_t classes, const GradientPolicy& policy,
                                       uint64_t detach_seed)
    : hidden_(hidden),
      classes_(classes),
      lstm_(lstm_options(inputs, hidden, layers, policy, detach_seed)),
      head_weight_(at::zeros({classes, hidden})),
      head_bias_(at::zeros({classes})) {
  const c10::NoGradGuard no_grad;
  for (const auto& parameter : lstm_->named_parameters()) {
    parameter.value().zero_();
    parameters_.push_back({parameter.key(), parameter.value()});
  }
  parameters_.push_back({"head.weight", head_weight_});
  parameters_.push_back({"head.bias", head_bias_});
  gradients_.resize(parameters_.size());
  gradients_[gradients_.size() - 2] = at::zeros({classes, hidden});
  gradients_.back() = at::zeros({classes});
}

void SequenceClassifier::init_uniform(uint64_t seed) {
  const c10::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden_));
  uint64_t n = 0;
  for (const NamedTensor& parameter : parameters_) {
    float* const value = parameter.tensor.data_ptr<float>();
    for (int64_t i = 0; i < parameter.tensor.numel(); ++i) {
      value[i] = static_cast<float>((2 * random_uniform(seed, n++) - 1) * bound);
    }
  }
}

void SequenceClassifier::init_chrono(uint64_t seed, int64_t longest) {
  init_uniform(seed);
  const uint64_t chrono_seed = random_bits(seed, ~uint64_t{0});
  uint64_t n = 0;
  for (const NamedTensor& parameter : parameters_) {
    const bool added = parameter.name.rfind("bias_hh", 0) == 0;
    if (!added && parameter.name.rfind("bias_ih", 0) != 0) continue;
    float* const input_gate = parameter.tensor.data_ptr<float>();
    float* const forget_gate = input_gate + hidden_;
    for (int64_t i = 0; i < hidden_; ++i) {
      // The op adds both biases: one carries the value, the other is zero.
      const double range = static_cast<double>(longest) - 2;
      const double bias = added ? 0 : std::log(1 + range * random_uniform(chrono_seed, n++));
      forget_gate[i] = static_cast<float>(bias);
      input_gate[i] = static_cast<float>(-bias);
    }
  }
}

SoftmaxHead SequenceClassifier::head() const {
  return {hidden_, classes_, head_weight_.data_ptr<float>(), head_bias_.data_ptr<float>()};
}

double SequenceClassifier::train_pass(const at::Tensor& x, const uint8_t* target,
                                      int64_t target_steps) {
  const int64_t steps = x.size(0), batch = x.size(1);
  const at::Tensor h =
      lstm_->forward_with_scales(x, c10::nullopt, lstm_->draw_scales(steps, batch)).output;
  if (!dh_.defined() || dh_.sizes() != h.sizes()) dh_ = at::zeros(h.sizes());
  const int64_t skipped = (steps - target_steps) * batch * hidden_;  // of dh, zero once and for all
  const size_t lstm_parameters = parameters_.size() - 2;
  const double loss = head_gradient_.run(head(), h.data_ptr<float>() + skipped, target,
                                         target_steps * batch, dh_.data_ptr<float>() + skipped,
                                         gradients_[lstm_parameters].data_ptr<float>(),
                                         gradients_[lstm_parameters + 1].data_ptr<float>());
  for (size_t i = 0; i < lstm_parameters; ++i) parameters_[i].tensor.mutable_grad().reset();
  torch::autograd::backward({h}, {dh_});
  for (size_t i = 0; i < lstm_parameters; ++i) gradients_[i] = parameters_[i].tensor.grad();
  return loss;
}

at::Tensor SequenceClassifier::run(const at::Tensor& x, c10::optional<LSTMState>& state) {
  const c10::NoGradGuard no_grad;
  lstm_->eval();
  auto [h, next] = lstm_->forward(x, state);
  lstm_->train();
  state = next;
  return h;
}

}  // namespace hdetach
