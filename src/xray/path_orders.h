// A gradient split by how many times its path went through h on its way back in time: order 0 is
// the cell path alone (only A_t), order 1 has one B_t among the A_t, and so on; what went through
// more often than asked for is the rest.
//
// The backward pass is linear, so the orders are carried side by side, each a copy of the pass:
// what step t sends into h[t-1] by W_hh arrives there one order higher, what it sends into c[t-1]
// keeps its order. The rest takes from the last order and from itself. Nothing is subtracted, so a
// small order keeps its digits beside a large one, and the orders add up to the gradient of the op.
// A path passes through at most one h a time step, in a stack of layers too.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "xray/notation.h"

namespace hdetach::xray {

struct Scales {
  at::Tensor h, c;  // [T] each, or undefined for ones: as the op's h_scale and c_scale
};

struct OrderedGradient {
  // By layer [orders, 4H, H+I+1], columns as read_by_steps(): W_hh, W_ih, bias.
  std::vector<at::Tensor> weights;
  // [orders + 1, T, B]: the squared norm of the gradient into the states (h, c) of all layers after
  // each step, by order, and of all orders together. Losses of that step and of later ones count.
  at::Tensor state_squares;
};

// Orders 0 .. highest and the rest: highest + 2 in all. dh: [T,B,H], the loss's gradient into the
// last layer's h of every step. Without `want_weights` there are only the states.
OrderedGradient split_by_order(const std::vector<Layer>& layers, const std::vector<Pass>& passes,
                               const at::Tensor& dh, const Scales& scales, int64_t highest,
                               bool want_weights);

}  // namespace hdetach::xray
