#include "xray/notation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <tuple>
#include <vector>

#include "hdetach/lstm.h"

namespace hdetach::xray {
namespace {

at::Tensor gate_block(const at::Tensor& matrix, int64_t gate) { return matrix.chunk(4)[gate]; }

}  // namespace

Pass run_forward(const Layer& layer, const at::Tensor& x, const at::Tensor& lengths) {
  const c10::NoGradGuard no_grad;
  const at::Tensor zeros = at::zeros({x.size(1), layer.hidden()}, x.options());
  const auto [h, c] =
      lstm(x, zeros, zeros, layer.w_ih, layer.w_hh, layer.bias, /*b_hh=*/{}, /*h_scale=*/{},
           /*c_scale=*/{}, lengths.defined() ? OptionalTensor(lengths) : OptionalTensor());
  return {x, at::cat({zeros.unsqueeze(0), h}), at::cat({zeros.unsqueeze(0), c})};
}

Diagonals diagonals(const Layer& layer, const Pass& pass, int64_t begin, int64_t end) {
  const at::Tensor c_before = pass.c.slice(0, begin, end);
  const auto gates = (at::linear(pass.x.slice(0, begin, end), layer.w_ih, layer.bias) +
                      at::linear(pass.h.slice(0, begin, end), layer.w_hh))
                         .chunk(4, -1);
  const at::Tensor i = at::sigmoid(gates[0]), f = at::sigmoid(gates[1]);
  const at::Tensor g = at::tanh(gates[2]), o = at::sigmoid(gates[3]);
  const at::Tensor tanh_c = at::tanh(pass.c.slice(0, begin + 1, end + 1));
  return {f,
          o * (1 - tanh_c * tanh_c),
          o * (1 - o) * tanh_c,
          f * (1 - f) * c_before,
          i * (1 - i) * g,
          (1 - g * g) * i};
}

at::Tensor read_by_steps(const Pass& pass, int64_t begin, int64_t end) {
  const at::Tensor x = pass.x.slice(0, begin, end);
  return at::cat(
      {pass.h.slice(0, begin, end), x, at::ones({end - begin, x.size(1), 1}, x.options())}, -1);
}

Transition transition(const Layer& layer, const Pass& pass, const Weight& weight, int64_t step,
                      int64_t row) {
  const Diagonals all = diagonals(layer, pass, step, step + 1);
  const auto here = [&](const at::Tensor& diagonal) { return diagonal[0][row]; };
  const auto through = [&](const at::Tensor& delta, int64_t gate) {
    return here(delta).unsqueeze(1) * gate_block(layer.w_hh, gate);
  };
  // E(w) times what the step reads: one number, at the unit that w belongs to.
  const auto added = [&](const at::Tensor& delta, int64_t gate) {
    const at::Tensor out = at::zeros({layer.hidden()}, delta.options());
    if (gate == weight.gate) {
      out[weight.unit] =
          here(delta)[weight.unit] * read_by_steps(pass, step, step + 1)[0][row][weight.column];
    }
    return out;
  };
  const at::Tensor delta_c = here(all.delta_c);
  Transition out;
  out.psi = through(all.delta_f, 1) + through(all.delta_g, 2) + through(all.delta_i, 0);
  out.psi_tilde = through(all.delta_o, 3) + delta_c.unsqueeze(1) * out.psi;
  out.forget = here(all.forget);
  out.forget_tilde = delta_c * out.forget;
  out.k = added(all.delta_f, 1) + added(all.delta_g, 2) + added(all.delta_i, 0);
  out.k_tilde = added(all.delta_o, 3) + delta_c * out.k;
  return out;
}

at::Tensor Transition::a() const {
  const at::Tensor zero = at::zeros_like(psi), one = at::eye(k.size(0), k.options());
  return at::cat({at::cat({forget.diag(), zero, k.diag()}, 1),
                  at::cat({forget_tilde.diag(), zero, k_tilde.diag()}, 1),
                  at::cat({zero, zero, one}, 1)});
}

at::Tensor Transition::b() const {
  const at::Tensor zero = at::zeros_like(psi);
  return at::cat({at::cat({zero, psi, zero}, 1), at::cat({zero, psi_tilde, zero}, 1),
                  at::cat({zero, zero, zero}, 1)});
}

at::Tensor follow(const Layer& layer, const Pass& pass, const Weight& weight, int64_t row,
                  const at::Tensor& h_scale, const at::Tensor& c_scale) {
  const int64_t hidden = layer.hidden();
  at::Tensor z =
      at::cat({at::zeros({2 * hidden}, pass.x.options()), at::ones({hidden}, pass.x.options())});
  std::vector<at::Tensor> all;
  for (int64_t t = 0; t < pass.steps(); ++t) {
    const Transition step = transition(layer, pass, weight, t, row);
    at::Tensor a = step.a(), b = step.b();
    if (h_scale.defined()) b = b * h_scale[t];
    // The first H columns of A_t are what reads c_{t-1}.
    if (c_scale.defined()) a.slice(1, 0, hidden).mul_(c_scale[t]);
    z = (a + b).mv(z);
    all.push_back(z);
  }
  return at::stack(all);
}

}  // namespace hdetach::xray
