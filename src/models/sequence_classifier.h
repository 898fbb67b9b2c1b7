// An LSTM with a softmax head over its last steps: the model of the copying and MNIST experiments.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hdetach/modules.h"
#include "models/named_tensor.h"
#include "models/softmax_head.h"

namespace hdetach {

class SequenceClassifier {
 public:
  // Initial weights are zero until init_uniform(), init_chrono() or a checkpoint sets them.
  SequenceClassifier(int64_t inputs, int64_t hidden, int64_t layers, int64_t classes,
                     const GradientPolicy& policy, uint64_t detach_seed);

  // Every weight and bias, head included, from U(-1/sqrt(H), 1/sqrt(H)), as nn.LSTM and nn.Linear
  // start. The same seed gives the same weights on any machine.
  void init_uniform(uint64_t seed);
  // init_uniform(), then forget and input biases for memories of 1 to `longest` steps (Tallec and
  // Ollivier 2018): b_f = log(U(1, longest - 1)), b_i = -b_f.
  void init_chrono(uint64_t seed, int64_t longest);

  // One training pass: draws the scales, leaves the gradients in gradients(), returns the mean loss
  // over the last target_steps steps.
  double train_pass(const at::Tensor& x,    // [T,B,I]
                    const uint8_t* target,  // [target_steps,B]
                    int64_t target_steps);

  // Part of an evaluation: runs the steps of x from `state` on and leaves the new state there.
  at::Tensor run(const at::Tensor& x, c10::optional<LSTMState>& state);  // -> h [T,B,H]

  // Names as nn.LSTM's, then head.weight [classes,H] and head.bias [classes]. The tensors are the
  // model's own.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // In the order of parameters(), valid until the next train_pass().
  const std::vector<at::Tensor>& gradients() const { return gradients_; }

  SoftmaxHead head() const;
  LSTM& lstm() { return lstm_; }

 private:
  int64_t hidden_, classes_;
  LSTM lstm_;
  at::Tensor head_weight_, head_bias_;
  std::vector<NamedTensor> parameters_;
  std::vector<at::Tensor> gradients_;
  SoftmaxHeadGradient head_gradient_;
  at::Tensor dh_;  // [T,B,H], kept: fresh memory of this size costs more than the head
};

}  // namespace hdetach
