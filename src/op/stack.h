// Layers and directions over hdetach::lstm, for dense and for packed sequences.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hdetach/gradient_scales.h"
#include "hdetach/lstm.h"
#include "op/packing.h"

namespace hdetach {

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

// packing: null for a dense input [T,B,I], else the input is [N,I]. States and scales: entry
// layer * D + direction; their columns are in the order of the batch before sorting. No states mean
// zeros. Scale t is that of the direction's t-th step. Weights in nn.LSTM's order: w_ih, w_hh[,
// b_ih, b_hh] for each layer and direction.
StackResult run_stack(at::Tensor input, Packing* packing, const OptionalTensor& h0,
                      const OptionalTensor& c0, at::TensorList weights, const StackOptions& options,
                      GradientScales scales, bool want_cells);

}  // namespace hdetach
