// torch::nn::LSTM with a gradient policy: the same options, shapes, parameter names, initial
// weights and archives. In eval mode, or with detach 0, it is an nn::LSTM.
#pragma once

#include <c10/util/Optional.h>
#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/container/any_value.h>
#include <torch/nn/options/rnn.h>
#include <torch/nn/pimpl.h>
#include <torch/nn/utils/rnn.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

#include "hdetach/gradient_scales.h"

namespace hdetach {

struct LSTMOptions {
  LSTMOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  // Not explicit: nn::LSTM's options are welcome wherever these are.
  LSTMOptions(const torch::nn::LSTMOptions& options);  // NOLINT

  TORCH_ARG(int64_t, input_size);
  TORCH_ARG(int64_t, hidden_size);
  TORCH_ARG(int64_t, num_layers) = 1;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, batch_first) = false;
  TORCH_ARG(double, dropout) = 0.0;  // on the output of every layer but the last, in training
  TORCH_ARG(bool, bidirectional) = false;
  TORCH_ARG(int64_t, proj_size) = 0;         // nn::LSTM's; only 0 is supported
  TORCH_ARG(GradientPolicy, policy);         // read at every forward pass, so it may be annealed
  TORCH_ARG(c10::optional<uint64_t>, seed);  // absent: torch's CPU generator, at the first draw
};

// The two initial (or final) states, each [num_layers * num_directions, B, H].
using LSTMState = std::tuple<torch::Tensor, torch::Tensor>;

struct LSTMResult {
  torch::Tensor output;              // as LSTMImpl::forward returns it
  LSTMState hx;                      // h_n, c_n
  std::vector<torch::Tensor> cells;  // the cell states of each layer, laid out as output
};

struct Packing;  // src/op/packing.h

class LSTMImpl : public torch::nn::Cloneable<LSTMImpl> {
 public:
  LSTMImpl(int64_t input_size, int64_t hidden_size)
      : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options);

  // Checks the options and makes new parameters. The generator of the scales is left as it is.
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  // As nn::LSTM has them, so that code written for it compiles.
  void flatten_parameters() {}  // the kernels read each weight where it is
  std::vector<torch::Tensor> all_weights() const { return parameters_.values(); }

  // input: [T,B,I], [B,T,I] when batch_first, or unbatched [T,I] with 2-D states.
  // In training mode the scales are drawn by the policy.
  std::tuple<torch::Tensor, LSTMState> forward(const torch::Tensor& input,
                                               c10::optional<LSTMState> hx = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(c10::optional<LSTMState>())})

 public:
  // The states, and the columns of per-sample scales, are in the order of the batch before sorting.
  std::tuple<torch::nn::utils::rnn::PackedSequence, LSTMState> forward_with_packed_input(
      const torch::nn::utils::rnn::PackedSequence& packed_input, c10::optional<LSTMState> hx = {});

  // forward() with the scales given, in training and in eval mode. Entry
  // layer * num_directions + direction belongs to that layer and direction; an empty list means
  // ones. Scale t is that of the direction's t-th step: the reverse direction starts at the end of
  // the sequence, so its scale 0 belongs to the last input.
  LSTMResult forward_with_scales(const torch::Tensor& input, c10::optional<LSTMState> hx,
                                 const GradientScales& scales);

  // The scales that forward() would draw next for this many steps and rows; advances the
  // generator. Nothing is drawn in eval mode.
  GradientScales draw_scales(int64_t steps, int64_t batch);

  // To checkpoint the draws. Reading the state before the first draw seeds the generator.
  ScaleGenerator::State generator_state() { return generator().state(); }
  void set_generator_state(ScaleGenerator::State state) { generator_ = ScaleGenerator(state); }

  // Change only the policy, dropout and batch_first of a module that exists.
  LSTMOptions options;
  // To be read, as nn::LSTM has it: reset() and the next forward pass copy the options to it.
  torch::nn::detail::RNNOptionsBase options_base;

 private:
  int64_t num_directions() const { return options.bidirectional() ? 2 : 1; }
  ScaleGenerator& generator();
  c10::optional<LSTMState> checked_hx(const c10::optional<LSTMState>& hx, bool batched,
                                      int64_t batch) const;
  LSTMResult run(const torch::Tensor& input, Packing* packing, const c10::optional<LSTMState>& hx,
                 const GradientScales& scales, bool want_cells);
  LSTMResult run_dense(const torch::Tensor& input, const c10::optional<LSTMState>& hx,
                       const GradientScales* scales);

  c10::optional<ScaleGenerator> generator_;  // a clone continues from the same state
};

TORCH_MODULE(LSTM);

}  // namespace hdetach
