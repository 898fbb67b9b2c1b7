// What a caller may hand over: layouts, modes, and numbers that are not numbers.
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include "tests/cases.h"

namespace hdetach::test {
namespace {

class Sequence : public OnEachPath {};

INSTANTIATE_TEST_SUITE_P(Paths, Sequence, testing::ValuesIn(paths()),
                         [](const auto& info) { return info.param.name(); });

TEST_P(Sequence, LayoutDoesNotMatter) {
  Case c{"layout", 6, 4, 5, 9, Scales::kRows, Scales::kSteps};
  c.lengths = true;
  Problem flat = problem(c);
  // What expand() can say, the contiguous problem says too.
  for (int i = 1; i < 3; ++i) flat.args[i] = flat.args[i].narrow(0, 0, 1).repeat({c.batch, 1});
  flat.dh = flat.dh.select(0, 0).select(0, 0).repeat({c.steps, c.batch, 1});
  const Outcome want = run(flat);

  // The same values with the first and last axes stored the other way round.
  const auto turned = [](const Tensor& t) {
    const int64_t last = t.dim() - 1;
    return t.transpose(0, last).contiguous().transpose(0, last);
  };
  const auto gapped = [](const Tensor& t) {
    return t.repeat_interleave(2).slice(0, 0, 2 * t.numel(), 2);
  };
  Problem odd = flat;
  for (const int i : {0, 3, 4}) odd.args[i] = turned(flat.args[i]);
  for (const int i : {5, 6}) odd.args[i] = gapped(flat.args[i]);
  odd.h_scale = turned(flat.h_scale);
  odd.c_scale = gapped(flat.c_scale);
  odd.lengths = gapped(flat.lengths.to(at::kInt));
  odd.dc = turned(flat.dc);
  for (const Tensor& t :
       {odd.args[0], odd.args[3], odd.args[5], odd.h_scale, odd.lengths, odd.dc}) {
    ASSERT_FALSE(t.is_contiguous());
  }
  // clone() keeps strides, so run() hands these layouts on; expanded states are made here.
  Tensors leaves = make_leaves(odd);
  for (int i = 1; i < 3; ++i) {
    leaves[i] = flat.args[i].narrow(0, 0, 1).expand({c.batch, c.hidden}).detach();
    leaves[i].requires_grad_();
    ASSERT_FALSE(leaves[i].is_contiguous());
  }
  ASSERT_FALSE(leaves[0].is_contiguous());
  odd.dh = flat.dh.select(0, 0).select(0, 0).expand({c.steps, c.batch, c.hidden});
  const auto [h, cells] = call(odd, leaves);
  expect_same_bits(outcome(h, cells, gradients(odd, h, cells, leaves)), want);
}

TEST_P(Sequence, ForwardBitsAreThoseOfTraining) {
  const Problem p = problem({"modes", 7, 5, 3, 20, Scales::kSteps});
  const auto [h, c] = call(p, make_leaves(p));
  EXPECT_TRUE(h.requires_grad() && c.requires_grad());
  const auto expect_bits = [&h = h, &c = c](const std::tuple<Tensor, Tensor>& got) {
    EXPECT_TRUE(std::get<0>(got).equal(h.detach()));
    EXPECT_TRUE(std::get<1>(got).equal(c.detach()));
    EXPECT_FALSE(std::get<0>(got).requires_grad());
  };
  expect_bits(call(p, p.args));
  {
    const c10::NoGradGuard no_grad;
    expect_bits(call(p, make_leaves(p)));
  }
  const c10::InferenceMode inference;
  const auto inferred = call(p, p.args);
  EXPECT_TRUE(std::get<0>(inferred).is_inference());
  EXPECT_TRUE(std::get<0>(inferred).equal(h));
  EXPECT_TRUE(std::get<1>(inferred).equal(c));
}

TEST_P(Sequence, NanStaysInItsRow) {
  const Case c{"nan", 6, 5, 3, 20, Scales::kSteps};
  Problem p = problem(c);
  const Outcome clean = run(p);
  const int64_t step = 2, row = 3;
  p.args[0][step][row][1] = NAN;
  const Outcome got = run(p);
  const Tensor others = at::arange(c.batch).ne(row);
  for (const auto& [with, without] : {std::tie(got.h, clean.h), std::tie(got.c, clean.c)}) {
    EXPECT_TRUE(with.narrow(0, step, c.steps - step).select(1, row).isnan().all().item<bool>());
    EXPECT_TRUE(with.narrow(0, 0, step).equal(without.narrow(0, 0, step)));
  }
  const auto rest = [&](const Tensor& t, int64_t axis) {
    return t.index_select(axis, others.nonzero().flatten());
  };
  EXPECT_TRUE(rest(got.h, 1).equal(rest(clean.h, 1)));
  EXPECT_TRUE(rest(got.c, 1).equal(rest(clean.c, 1)));
  EXPECT_TRUE(rest(got.grads[0], 1).equal(rest(clean.grads[0], 1)));
  for (int i = 1; i < 3; ++i) {
    EXPECT_TRUE(rest(got.grads[i], 0).equal(rest(clean.grads[i], 0))) << kArgNames[i];
  }
  EXPECT_TRUE(got.grads[0][step][row].isnan().all().item<bool>());
  for (int i = 3; i < kArgs; ++i) {
    // The sum over the batch must not hide it.
    EXPECT_TRUE(got.grads[i].isnan().any().item<bool>()) << kArgNames[i];
  }
}

// Gates driven far beyond what exp() can hold are 0 or 1, not NaN.
TEST_P(Sequence, SaturatedGatesStayExact) {
  for (const double size : {50.0, 1e4, 1e30}) {
    Problem p = problem({"saturated", 5, 4, 3, 20, Scales::kRows});
    p.args[0] = p.args[0] * size;
    const Outcome got = run(p), want = run(p.to(at::kDouble), lstm_reference);
    for (const auto& [name, value] : named(got)) {
      EXPECT_TRUE(value.isfinite().all().item<bool>()) << name << " at " << size;
    }
    // Forward only: a saturated gradient is a difference of numbers near 1, all rounding.
    expect_close(got.h, want.h, "h");
    expect_close(got.c, want.c, "c");
  }
}

// One input, or one initial state, that float32 just holds: a gate that is not exactly 0 or 1 would
// multiply it.
TEST_P(Sequence, OneHugeNumberSaturatesExactly) {
  for (const double size : {1e38, -1e38, 3e38}) {
    for (const bool is_state : {false, true}) {
      SCOPED_TRACE(testing::Message() << size << (is_state ? " in h0" : " in x"));
      Problem p = problem({"huge", 8, 4, 3, 20});
      (is_state ? p.args[1][1][0] : p.args[0][2][1][0]).fill_(size);
      const Outcome got = run(p), want = run(p.to(at::kDouble), lstm_reference);
      // Of the other numbers' sums nothing is lost: 1e-5 of the largest, and there are ten
      // roundings.
      for (const int i : {3, 4}) {
        const double most = want.grads[i].abs().max().item<double>();
        ASSERT_LT(most, 100.0);
        EXPECT_LT((got.grads[i].to(at::kDouble) - want.grads[i]).abs().max().item<double>(),
                  1e-5 * most)
            << kArgNames[i];
      }
    }
  }
}

// Where both paths are detached, what comes from later steps ends, whatever it is.
TEST_P(Sequence, NothingCrossesADetachedStep) {
  const int64_t step = 3;
  for (const bool by_rows : {false, true}) {
    const Case c{"crossing", 7, 5, 3, 20};
    Problem p = problem(c);
    const Tensor ones =
        at::full(by_rows ? at::IntArrayRef({7, 5}) : at::IntArrayRef({7}), 1.0, p.dh.options());
    p.h_scale = ones.clone();
    p.c_scale = ones.clone();
    p.h_scale[step].zero_();
    p.c_scale[step].zero_();
    const auto earlier = [&](const Outcome& outcome) {
      return Tensors{outcome.grads[0].narrow(0, 0, step), outcome.grads[1], outcome.grads[2]};
    };
    const Tensors clean = earlier(run(p));
    for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      Problem bad = p;
      bad.dh = p.dh.clone();
      bad.dc = p.dc.clone();
      bad.dc[step][1].fill_(value);
      bad.dh[step + 2][2].fill_(value);
      const Tensors got = earlier(run(bad));
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i].equal(clean[i])) << value << " went into " << kArgNames[i];
      }
    }
  }
}

TEST_P(Sequence, InfinityDoesWhatTheReferenceDoes) {
  Problem p = problem({"infinity", 4, 3, 2, 20});
  p.args[0][1][1][0] = INFINITY;
  const Outcome want = run(p, lstm_reference), got = run(p);
  EXPECT_TRUE(got.h.isfinite().equal(want.h.isfinite()));
  EXPECT_TRUE(got.c.isfinite().equal(want.c.isfinite()));
}

// An overflow must be seen, in every gradient that it reaches: trainers skip such an update.
TEST_P(Sequence, AnInfiniteGradientIsNotHidden) {
  Problem p = problem({"infinite gradient", 6, 5, 3, 20});
  p.dh[3][2][7] = INFINITY;
  const Outcome want = run(p, lstm_reference), got = run(p);
  EXPECT_FALSE(want.grads[4].isfinite().all().item<bool>());
  for (int i = 0; i < kArgs; ++i) {
    const Tensor hidden =
        got.grads[i].isfinite().logical_and(want.grads[i].isfinite().logical_not());
    EXPECT_FALSE(hidden.any().item<bool>()) << kArgNames[i];
  }
}

// Kernels of the CPU count floats below 1.2e-38 as zero (the reference does not), the caller's
// thread does not.
TEST_P(Sequence, TinyGradientsAreFlushedAndTheModeIsPutBack) {
  const Case c{"tiny", 40, 3, 2, 20};
  Problem p = problem(c);
  p.dh = at::full_like(p.dh, 1e-41);
  p.dc = Tensor();
  const Outcome tiny = run(p);
  const bool kernel = GetParam().kernel != "reference";
  // A GPU computes with them at no cost; its kernels may do either.
  if (GetParam().device.is_cpu() || !kernel) {
    EXPECT_EQ(tiny.grads[3].abs().max().item<double>() == 0.0, kernel);
  }
  volatile float smallest = 1.2e-38f;
  EXPECT_GT(smallest * 0.5f, 0.0f) << "the mode of the caller's thread was left changed";
}

}  // namespace
}  // namespace hdetach::test
