// Algorithm 1 of the paper as written: one step at a time, ATen operations, detach().
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

#include "op/checks.h"
#include "op/sizes.h"

namespace hdetach {
namespace {

// The value of `state`, bit for bit, with its gradient multiplied by `scale` ([] or [B]).
at::Tensor scale_gradient(const at::Tensor& state, const at::Tensor& scale) {
  const at::Tensor blocked = state.detach();
  if (scale.dim() == 0 && !is_traced(scale)) {
    const double value = scale.item<double>();
    if (value == 1.0) return state;
    if (value == 0.0) return blocked;
  }
  const at::Tensor column = scale.dim() == 0 ? scale : scale.unsqueeze(1);
  // state - blocked is exactly zero; its gradient is not. where() keeps 0 * inf out of blocked
  // rows.
  return at::where(column.ne(0), blocked + column * (state - blocked), blocked);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> lstm_reference(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  const LstmInputs in = check_lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths);
  std::vector<at::Tensor> all_h, all_c;
  at::Tensor h = in.h0, c = in.c0;
  const int64_t steps = number(size_of(in.x, 0));
  for (int64_t t = 0; t < steps; ++t) {
    at::Tensor x_t = in.x[t], alive;
    if (in.lengths.defined()) {
      alive = in.lengths.gt(t).unsqueeze(1);
      // Padding may hold anything, and 0 * NaN is not 0 in the backward pass.
      x_t = at::where(alive, x_t, at::zeros_like(x_t));
    }
    const at::Tensor h_in = in.h_scale.defined() ? scale_gradient(h, in.h_scale[t]) : h;
    const at::Tensor c_in = in.c_scale.defined() ? scale_gradient(c, in.c_scale[t]) : c;
    const auto gates =
        (at::linear(x_t, in.w_ih, in.b_ih) + at::linear(h_in, in.w_hh, in.b_hh)).chunk(4, 1);
    const at::Tensor i = at::sigmoid(gates[0]), f = at::sigmoid(gates[1]);
    const at::Tensor g = at::tanh(gates[2]), o = at::sigmoid(gates[3]);
    c = f * c_in + i * g;
    h = o * at::tanh(c);
    if (alive.defined()) {
      c = at::where(alive, c, at::zeros_like(c));
      h = at::where(alive, h, at::zeros_like(h));
    }
    all_h.push_back(h);
    all_c.push_back(c);
  }
  return {at::stack(all_h), at::stack(all_c)};
}

}  // namespace hdetach
