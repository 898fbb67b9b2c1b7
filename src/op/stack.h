// Layers and directions over hdetach::lstm, for dense and for packed sequences.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hdetach/gradient_scales.h"

namespace hdetach {

// Where the steps of a batch lie: dense [T,B,F], or packed [N,F] as in a PackedSequence, where only
// the N steps that exist are stored. hdetach::lstm sees [T,B,F] in the order of processing.
struct StackLayout {
  int64_t steps = 0;            // packed, as is all below; 0 means dense
  int64_t batch = 0;            //
  at::Tensor lengths;           // [B] on the data's device; undefined where all are T
  at::Tensor position[2] = {};  // [N], where each packed row stands in [T*B], forward and reverse
  at::Tensor last;              // [B], where each sequence's last step stands in [T*B]
  at::Tensor sorted_indices;    // [B] or undefined: the columns of scales come unsorted

  static StackLayout packed(const at::Tensor& data, const at::Tensor& batch_sizes,
                            const at::Tensor& sorted_indices, bool bidirectional);

  bool is_packed() const { return steps > 0; }
  at::Tensor to_steps(const at::Tensor& data, bool reverse) const;
  at::Tensor from_steps(const at::Tensor& states, bool reverse) const;
  at::Tensor final_state(const at::Tensor& states) const;
};

struct StackOptions {
  bool has_biases = true;
  int64_t num_layers = 1;
  double dropout = 0.0;  // on the output of every layer but the last, in training
  bool train = false;
  bool bidirectional = false;
};

struct StackResult {
  at::Tensor output;              // [T,B,D*H], or [N,D*H] when packed; D directions
  at::Tensor h_n, c_n;            // [num_layers * D, B, H]
  std::vector<at::Tensor> cells;  // of each layer, laid out as output; empty unless wanted
};

// States and scales: entry layer * D + direction. The states are in the order of the batch after
// sorting, the columns of [T,B] scales in the order before. Scale t is that of the direction's t-th
// step. Weights in nn.LSTM's order: w_ih, w_hh[, b_ih, b_hh] for each layer and direction.
StackResult run_stack(at::Tensor input, const StackLayout& layout, const at::Tensor& h0,
                      const at::Tensor& c0, at::TensorList weights, const StackOptions& options,
                      GradientScales scales, bool want_cells);

}  // namespace hdetach
