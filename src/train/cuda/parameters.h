// Where the parameters of several replicas lie: tensor by tensor, each [R, numel], in one buffer,
// as kernel.h wants them. Gradients likewise, but both biases of a layer share one.
#pragma once

#include <cstdint>
#include <vector>

#include "train/engine.h"

namespace hdetach::train {

struct ParameterTensor {
  int64_t numel;
  int64_t weight, gradient;  // offsets in floats
};

struct ParameterLayout {
  // In the order of SequenceClassifier::parameters(): w_ih, w_hh, b_ih, b_hh of each layer, then
  // the head's weight and bias.
  std::vector<ParameterTensor> tensors;
  int64_t weights = 0, gradients = 0;  // floats in all

  ParameterLayout(const ModelShape& shape, int64_t replicas) {
    const auto add = [&](int64_t numel, bool own_gradient) {
      const int64_t before = tensors.empty() ? 0 : tensors.back().gradient;
      tensors.push_back({numel, weights, own_gradient ? gradients : before});
      weights += replicas * aligned(numel);
      if (own_gradient) gradients += replicas * aligned(numel);
    };
    const int64_t gates = 4 * shape.hidden;
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      add(gates * (layer == 0 ? shape.inputs : shape.hidden), true);
      add(gates * shape.hidden, true);
      add(gates, true);
      add(gates, false);
    }
    add(shape.classes * shape.hidden, true);
    add(shape.classes, true);
  }

  const ParameterTensor& layer(int64_t layer, int64_t i) const { return tensors[4 * layer + i]; }
  const ParameterTensor& head_weight() const { return tensors[tensors.size() - 2]; }
  const ParameterTensor& head_bias() const { return tensors.back(); }

 private:
  // Tensors start where vector loads may; the replicas of one lie side by side without gaps.
  static int64_t aligned(int64_t numel) { return (numel + 63) / 64 * 64; }
};

}  // namespace hdetach::train
