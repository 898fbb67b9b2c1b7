// The exact properties of the method: what detaching, damping and keeping do to the gradient.
#include <ATen/Context.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>

#include "tests/cases.h"

namespace hdetach::test {
namespace {

using Method = OnEachPath;

INSTANTIATE_TEST_SUITE_P(Paths, Method, testing::ValuesIn(paths()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(Method, Detach0IsTorchsLstm) {
  const Case c{"nn", 12, 5, 4, 33};
  const Problem p = problem(c);
  torch::nn::LSTM peer(torch::nn::LSTMOptions(c.input, c.hidden));
  at::globalContext().setAllowTF32CuDNN(false);  // plain float32, as the op
  peer->to(GetParam().device, GetParam().type);
  const Tensors leaves = make_leaves(p);
  Tensors inputs(leaves.begin(), leaves.begin() + 3);
  int next = 3;
  for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"}) {
    const c10::NoGradGuard no_grad;
    inputs.push_back(peer->named_parameters()[name].copy_(p.args[next++]));
  }
  const auto [h, state] =
      peer->forward(leaves[0], std::make_tuple(leaves[1].unsqueeze(0), leaves[2].unsqueeze(0)));
  // nn::LSTM shows its last cell state only.
  const Tensor last_c = std::get<1>(state).squeeze(0);
  const Tensors want = torch::autograd::grad({h, last_c}, inputs, {p.dh, p.dc[-1]});

  Problem ours = p;
  ours.dc = at::zeros_like(p.dc);
  ours.dc[-1] = p.dc[-1];
  // cuDNN's float32 LSTM is up to 4.1e-6 off on an H200, where our kernels stay below 2e-7.
  const bool cudnn = p.dh.is_cuda() && p.dh.scalar_type() == at::kFloat;
  const double allowed = cudnn ? 1e-5 : tolerance(p.dh);
  for (const bool ones : {false, true}) {
    if (ones) ours.h_scale = ours.c_scale = at::ones({c.steps}, p.dh.options());
    const Outcome got = run(ours);
    expect_close(got.h, h, "h", allowed);
    expect_close(got.c[-1], last_c, "c", allowed);
    for (int i = 0; i < kArgs; ++i) expect_close(got.grads[i], want[i], kArgNames[i], allowed);
  }
}

// Corollary 1: the gradient is linear in every step's scale, so its mean over independent 0/1 draws
// is the gradient at the mean scale.
TEST_P(Method, MeanOverAllMasksIsTheGradientAtKeep) {
  const int64_t steps = 6;
  const double detach = 0.3, keep = 1 - detach;
  Problem p = problem({"masks", steps, 2, 3, 5});
  Tensors mean(kArgs);
  for (int mask = 0; mask < 1 << steps; ++mask) {
    p.h_scale = at::zeros_like(p.dh.select(2, 0).select(1, 0));
    double probability = 1.0;
    for (int t = 0; t < steps; ++t) {
      const bool kept = mask >> t & 1;
      if (kept) p.h_scale[t] = 1;
      probability *= kept ? keep : detach;
    }
    const Outcome one = run(p);
    for (int i = 0; i < kArgs; ++i) {
      const Tensor term = one.grads[i].to(at::kDouble) * probability;
      mean[i] = mean[i].defined() ? mean[i] + term : term;
    }
  }
  p.h_scale = at::full({steps}, keep, p.dh.options());
  const Outcome at_keep = run(p);
  p.h_scale = Tensor();
  const Outcome plain = run(p);
  for (int i = 0; i < kArgs; ++i) {
    expect_close(at_keep.grads[i], mean[i], kArgNames[i]);
    // The scale does something: c0, too, reaches later states through h.
    EXPECT_GT(relative_error(plain.grads[i], mean[i]), 1e-2) << kArgNames[i];
  }
}

// With every step detached, the gradient of the last cell state runs along the cells alone: A_t is
// diag(f_t), so dc_t = dc_T * f_{t+1} * ... * f_T, and each step's gates get their own share of it.
TEST_P(Method, Detach1IsTheCellPathAlone) {
  const Case c{"cells", 9, 3, 4, 10, Scales::kZero};
  Problem p = problem(c);
  const Tensor arriving = p.dc[-1].clone();
  p.dh = Tensor();
  p.dc = at::zeros_like(p.dc);
  p.dc[-1] = arriving;
  const Outcome got = run(p);

  const Problem exact = p.to(at::kDouble);
  const Tensors& a = exact.args;
  Tensors h{a[1]}, cells{a[2]};
  std::vector<Tensors> gates;
  for (int64_t t = 0; t < c.steps; ++t) {
    const auto pre = (at::linear(a[0][t], a[3], a[5]) + at::linear(h[t], a[4], a[6])).chunk(4, 1);
    gates.push_back({pre[0].sigmoid(), pre[1].sigmoid(), pre[2].tanh(), pre[3].sigmoid()});
    cells.push_back(gates[t][1] * cells[t] + gates[t][0] * gates[t][2]);
    h.push_back(gates[t][3] * cells[t + 1].tanh());
  }
  Tensor product = at::ones_like(exact.dc[-1]);
  Tensors want;
  for (const Tensor& t : a) want.push_back(at::zeros_like(t));
  for (int64_t t = c.steps - 1; t >= 0; --t) {
    const Tensor &i = gates[t][0], &f = gates[t][1], &g = gates[t][2];
    const Tensor at_t = exact.dc[-1] * product;
    const Tensor di = at_t * g * i * (1 - i), df = at_t * cells[t] * f * (1 - f);
    const Tensor dg = at_t * i * (1 - g * g);
    const Tensor dgates = at::stack({di, df, dg, at::zeros_like(di)}, 1).flatten(1);  // [B,4H]
    want[0][t] = dgates.mm(a[3]);
    want[3] += dgates.t().mm(a[0][t]);
    want[4] += dgates.t().mm(h[t]);  // detaching h does not detach w_hh
    want[5] += dgates.sum(0);
    want[6] += dgates.sum(0);
    product = product * f;
  }
  want[2] = exact.dc[-1] * product;
  for (int i = 0; i < kArgs; ++i) expect_close(got.grads[i], want[i], kArgNames[i]);
  EXPECT_EQ(got.grads[1].abs().max().item<double>(), 0.0) << "h0 gets nothing";
}

// Algorithm 1 by hand, apart from the reference: blocked states are detached.
Outcome by_hand(const Problem& p, const std::vector<bool>& block_h,
                const std::vector<bool>& block_c) {
  const Tensors a = make_leaves(p);
  Tensor h = a[1], c = a[2];
  Tensors all_h, all_c;
  for (size_t t = 0; t < block_h.size(); ++t) {
    const Tensor h_in = block_h[t] ? h.detach() : h, c_in = block_c[t] ? c.detach() : c;
    const auto gates = (a[0][t].mm(a[3].t()) + a[5] + h_in.mm(a[4].t()) + a[6]).chunk(4, 1);
    c = gates[1].sigmoid() * c_in + gates[0].sigmoid() * gates[2].tanh();
    h = gates[3].sigmoid() * c.tanh();
    all_h.push_back(h);
    all_c.push_back(c);
  }
  const Tensor stacked_h = at::stack(all_h), stacked_c = at::stack(all_c);
  return outcome(stacked_h, stacked_c, gradients(p, stacked_h, stacked_c, a));
}

TEST_P(Method, ScaleZeroIsDetach) {
  const int64_t steps = 7;
  const std::vector<bool> none(steps, false), every(steps, true);
  const std::vector<bool> some{true, false, true, true, false, false, true};
  const std::vector<bool> others{false, true, true, false, false, true, false};
  const auto scale_of = [&](const std::vector<bool>& blocked, const Problem& p) {
    Tensor scale = at::ones({steps}, p.dh.options());
    for (int64_t t = 0; t < steps; ++t) {
      if (blocked[t]) scale[t] = 0;
    }
    return scale;
  };
  for (const auto& block_h : {none, some, every}) {
    for (const auto& block_c : {none, others, every}) {
      Problem p = problem({"by_hand", steps, 3, 4, 18});
      const Outcome want = by_hand(p, block_h, block_c);
      p.h_scale = scale_of(block_h, p);
      p.c_scale = scale_of(block_c, p);
      const Outcome got = run(p);
      expect_close(got, want);
      // Step 0's scales alone stand between the rest and the initial states.
      EXPECT_EQ(got.grads[1].abs().max().item<double>() == 0.0, block_h[0]);
      EXPECT_EQ(got.grads[2].abs().max().item<double>() == 0.0, block_c[0]);
    }
  }
}

// Damping multiplies gradients; the states it passes through keep their value to the bit.
TEST_P(Method, DampingLeavesTheForwardAlone) {
  Problem p = problem({"damp", 9, 4, 3, 18});
  const Outcome plain = run(p);
  p.h_scale = p.c_scale = at::full({9, 4}, 0.3, p.dh.options());
  const Outcome damped = run(p);
  EXPECT_TRUE(damped.h.equal(plain.h));
  EXPECT_TRUE(damped.c.equal(plain.c));
  EXPECT_FALSE(damped.grads[4].equal(plain.grads[4]));
}

// Row b of a problem, alone, for its own length.
Problem row_of(const Problem& p, int64_t b) {
  const int64_t steps = p.lengths.defined() ? p.lengths[b].item<int64_t>() : p.args[0].size(0);
  const auto cut = [&](const Tensor& t) {
    return t.defined() ? t.narrow(0, 0, steps).narrow(1, b, 1).contiguous() : t;
  };
  const auto scale = [&](const Tensor& t) { return t.defined() ? cut(t).squeeze(1) : t; };
  Problem row = p;
  row.args[0] = cut(p.args[0]);
  for (int i = 1; i < 3; ++i) row.args[i] = p.args[i].narrow(0, b, 1);
  row.h_scale = scale(p.h_scale);
  row.c_scale = scale(p.c_scale);
  row.lengths = Tensor();
  row.dh = cut(p.dh);
  row.dc = cut(p.dc);
  return row;
}

void expect_rows_apart(const Problem& p, const Outcome& whole) {
  Tensors sums;
  for (const Tensor& t : whole.grads) sums.push_back(at::zeros_like(t));
  for (int64_t b = 0; b < p.args[0].size(1); ++b) {
    SCOPED_TRACE("row " + std::to_string(b));
    const Problem row = row_of(p, b);
    const int64_t steps = row.args[0].size(0);
    const auto of_row = [&](const Tensor& t) { return t.narrow(0, 0, steps).narrow(1, b, 1); };
    const Outcome alone = run(row);
    expect_close(of_row(whole.h), alone.h, "h");
    expect_close(of_row(whole.c), alone.c, "c");
    expect_close(of_row(whole.grads[0]), alone.grads[0], "dx");
    for (int i = 1; i < 3; ++i) {
      expect_close(whole.grads[i].narrow(0, b, 1), alone.grads[i], kArgNames[i]);
    }
    for (int i = 3; i < kArgs; ++i) sums[i] += alone.grads[i];
  }
  for (int i = 3; i < kArgs; ++i) expect_close(whole.grads[i], sums[i], kArgNames[i]);
}

TEST_P(Method, RowScalesAreEachRowsOwn) {
  const Problem p = problem({"rows", 8, 6, 3, 12, Scales::kRows, Scales::kRows});
  expect_rows_apart(p, run(p));
}

TEST_P(Method, LengthsAreEachRowsOwn) {
  Case c{"lengths", 9, 6, 3, 12, Scales::kRows, Scales::kRows};
  c.lengths = true;
  Problem p = problem(c);
  // Whatever stands in the padding, or arrives there, is never read.
  for (int64_t b = 0; b < c.batch; ++b) {
    const int64_t length = p.lengths[b].item<int64_t>();
    for (const Tensor& t : {p.args[0], p.dh, p.dc}) {
      t.narrow(0, length, c.steps - length).select(1, b).fill_(NAN);
    }
  }
  const Outcome whole = run(p);
  expect_rows_apart(p, whole);
  for (int64_t b = 0; b < c.batch; ++b) {
    const int64_t length = p.lengths[b].item<int64_t>();
    for (const Tensor& t : {whole.h, whole.c, whole.grads[0]}) {
      const Tensor past = t.narrow(0, length, c.steps - length).select(1, b);
      EXPECT_TRUE(past.eq(0).all().item<bool>()) << "row " << b;
    }
  }
}

// One step at a time, as an attention model calls it.
TEST_P(Method, CellByCellIsTheSequence) {
  for (const Scales kind : {Scales::kNone, Scales::kSteps, Scales::kRows}) {
    const Case c{"cell", 7, 5, 4, 17, kind, kind};
    const Problem p = problem(c);
    const Tensors a = make_leaves(p);
    const auto scale = [](const Tensor& t, int64_t step) {
      return optional(t.defined() ? t[step] : t);
    };
    Tensor h = a[1], cell = a[2];
    Tensors all_h, all_c;
    for (int64_t t = 0; t < c.steps; ++t) {
      std::tie(h, cell) = lstm_cell(a[0][t], h, cell, a[3], a[4], a[5], a[6], scale(p.h_scale, t),
                                    scale(p.c_scale, t));
      all_h.push_back(h);
      all_c.push_back(cell);
    }
    const Tensor stacked_h = at::stack(all_h), stacked_c = at::stack(all_c);
    expect_close(outcome(stacked_h, stacked_c, gradients(p, stacked_h, stacked_c, a)), run(p));
  }
}

}  // namespace
}  // namespace hdetach::test
