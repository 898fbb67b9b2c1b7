// First and second gradients against finite differences, and second gradients of every kernel.
#include "op/error_budget.h"
#include "tests/cases.h"

namespace hdetach::test {
namespace {

// A loss whose gradient depends on the outputs, so that second gradients pass through dh and dc.
Tensor loss_of(const Problem& p, const Tensors& args, Op op = lstm) {
  const auto [h, c] = call(p, args, op);
  return (h * p.dh).sum() + (h.square() * p.dc).sum() + (c.square() * p.dh).sum() +
         (c * p.dc).sum();
}

double inner(const Tensors& a, const Tensors& b) {
  double sum = 0.0;
  for (int i = 0; i < kArgs; ++i) sum += (a[i] * b[i]).sum().item<double>();
  return sum;
}

Tensors gradient_of(const Problem& p, const Tensors& leaves) {
  return torch::autograd::grad({loss_of(p, leaves)}, leaves);
}

// The gradient of <gradient, direction>: the Hessian times the direction.
Tensors hessian_product(const Problem& p, const Tensors& leaves, const Tensors& direction,
                        Op op = lstm) {
  const Tensors first = torch::autograd::grad({loss_of(p, leaves, op)}, leaves, {},
                                              /*retain_graph=*/true, /*create_graph=*/true);
  return torch::autograd::grad(first, leaves, direction, {}, false, /*allow_unused=*/true);
}

Tensors random_like(const Tensors& like, uint64_t seed) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(seed);
  Tensors out;
  for (const Tensor& t : like) {
    const Tensor drawn = at::randn(t.sizes(), random, t.options().device(at::kCPU));
    out.push_back(drawn.to(t.device()));
  }
  return out;
}

// Central differences of a smooth function of order 1 with step 1e-5: the cut-off term is about
// 1e-10, rounding about 1e-16 / 1e-5.
constexpr double kStep = 1e-5, kDifferenceTolerance = 1e-7;

// Along each argument's own direction, so that no argument's error hides behind another's size.
template <typename Function>
void expect_derivative(const Problem& p, const Tensors& gradient, const Function& function) {
  const Tensors direction = random_like(p.args, 5);
  for (int i = 0; i < kArgs; ++i) {
    const auto at_offset = [&](double offset) {
      Problem moved = p;
      moved.args[i] = p.args[i] + offset * direction[i];
      return function(moved);
    };
    const double want = (at_offset(kStep) - at_offset(-kStep)) / (2 * kStep);
    const double got = (gradient[i] * direction[i]).sum().item<double>();
    EXPECT_NEAR(got, want, kDifferenceTolerance * std::max(1.0, std::abs(want))) << kArgNames[i];
    EXPECT_GT(std::abs(want), 1e-3) << kArgNames[i] << " must matter";
  }
}

class Differences : public testing::TestWithParam<Case> {};

// Scales are all 1 here: a steered gradient is not the derivative of anything.
INSTANTIATE_TEST_SUITE_P(Cases, Differences,
                         testing::Values(Case{"plain", 5, 3, 2, 4},
                                         Case{"lengths", 5, 4, 2, 4, Scales::kNone, Scales::kNone,
                                              true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Differences, MatchTheGradientInFloat64) {
  const Problem p = make_problem(GetParam()).to(at::kDouble);
  const Tensors gradient = gradient_of(p, make_leaves(p));
  expect_derivative(p, gradient,
                    [](const Problem& q) { return loss_of(q, q.args).item<double>(); });
}

TEST_P(Differences, MatchTheSecondGradientInFloat64) {
  const Problem p = make_problem(GetParam()).to(at::kDouble);
  const Tensors direction = random_like(p.args, 9);
  const Tensors second = hessian_product(p, make_leaves(p), direction);
  expect_derivative(p, second, [&](const Problem& q) {
    return inner(gradient_of(q, make_leaves(q)), direction);
  });
}

class SecondGradient : public testing::TestWithParam<std::string> {
 protected:
  void expect_in_budget(const Tensors& got, const Tensors& plain, const Tensors& truth) {
    for (size_t i = 0; i < got.size(); ++i) {
      ErrorBudget budget;
      budget.add(got[i], plain[i], truth[i]);
      EXPECT_TRUE(budget.met()) << "argument " << i << " is off by " << budget.error()
                                << ", plain float32 by " << budget.plain_error();
    }
  }

 private:
  ForcedKernel forced_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Kernels, SecondGradient, testing::ValuesIn(testable_kernels()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(SecondGradient, StaysInTheErrorBudget) {
  for (Case c :
       {Case{"plain", 8, 6, 5, 21}, Case{"rows", 8, 6, 5, 21, Scales::kRows, Scales::kRows},
        Case{"lengths", 8, 6, 5, 21, Scales::kSteps, Scales::kNone, true}}) {
    SCOPED_TRACE(c.name);
    const Problem p = problem_for(GetParam(), c), exact = p.to(at::kDouble);
    const Tensors direction = random_like(p.args, 9);
    Tensors exact_direction;
    for (const Tensor& t : direction) exact_direction.push_back(t.to(at::kDouble));
    const Tensors got = hessian_product(p, make_leaves(p), direction);
    EXPECT_EQ(last_forward().kernel, GetParam());
    expect_in_budget(got, hessian_product(p, make_leaves(p), direction, lstm_reference),
                     hessian_product(exact, make_leaves(exact), exact_direction, lstm_reference));
  }
}

// The first gradient under create_graph is the reference's; it must be the kernel's to rounding.
TEST_P(SecondGradient, CreateGraphKeepsTheFirstGradient) {
  const Problem p =
      problem_for(GetParam(), {"create_graph", 7, 4, 3, 18, Scales::kRows, Scales::kSteps});
  const Tensors leaves = make_leaves(p);
  const auto [h, c] = call(p, leaves);
  const Tensors plain = gradients(p, h, c, leaves, /*retain_graph=*/true);
  const Tensors kept = gradients(p, h, c, leaves, true, /*create_graph=*/true);
  for (int i = 0; i < kArgs; ++i) {
    EXPECT_TRUE(kept[i].requires_grad()) << kArgNames[i];
    expect_close(plain[i], kept[i].detach(), kArgNames[i]);
  }
}

// Arguments made from one another: each path counts once.
TEST_P(SecondGradient, OfArgumentsThatDependOnEachOther) {
  const Case c{"dependent", 5, 4, 18, 18};
  const auto second_gradient = [&](const Problem& p, Op op) {
    Tensors a = make_leaves(p);
    const Tensors leaves = a;
    a[2] = a[1] * a[1];                     // c0 from h0
    a[0] = a[0] + a[1].unsqueeze(0) * 0.5;  // x from h0
    a[6] = a[5];                            // one bias, given twice
    const Tensor loss = loss_of(p, a, op);
    const Tensors used{leaves[0], leaves[1], leaves[3], leaves[4], leaves[5]};
    const Tensors first = torch::autograd::grad({loss}, used, {}, true, true);
    Tensor penalty = first[0].square().sum();
    for (size_t i = 1; i < first.size(); ++i) penalty = penalty + first[i].square().sum();
    return torch::autograd::grad({penalty}, used);
  };
  const Problem p = problem_for(GetParam(), c);
  const Tensors got = second_gradient(p, lstm), plain = second_gradient(p, lstm_reference);
  const Tensors truth = second_gradient(p.to(at::kDouble), lstm_reference);
  expect_in_budget(got, plain, truth);
}

class Range : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kernels, Range, testing::ValuesIn(testable_kernels()),
                         [](const auto& info) { return test_name(info.param); });

// The backward pass is linear in what arrives, and a power of two changes no rounding: however
// small or large the gradients are, as long as float32 holds them. Exploding ones do get there.
TEST_P(Range, OfGradientsIsThatOfFloat32) {
  const ForcedKernel forced(GetParam());
  for (const Case& c : cases_for(GetParam())) {
    if (c.steps * c.batch * c.hidden > 500000) continue;  // slow, and like the others
    SCOPED_TRACE(c.name);
    const Problem p = problem_for(GetParam(), c);
    const Outcome plain = run(p);
    EXPECT_EQ(last_backward().kernel, GetParam());
    double largest = 0;
    for (const Tensor& t : {p.dh, p.dc}) {
      if (t.defined()) largest = std::max(largest, t.abs().max().item<double>());
    }
    for (const Tensor& t : plain.grads) {
      if (t.defined()) largest = std::max(largest, t.abs().max().item<double>());
    }
    // Two powers of room for sums that were larger on their way.
    for (const int power : {-60, 125 - std::ilogb(largest)}) {
      SCOPED_TRACE(power);
      const double factor = std::ldexp(1.0, power);
      Problem scaled = p;
      if (p.dh.defined()) scaled.dh = p.dh * factor;
      if (p.dc.defined()) scaled.dc = p.dc * factor;
      Outcome want = plain;
      for (Tensor& t : want.grads) {
        if (t.defined()) t = t * factor;
      }
      expect_same_bits(run(scaled), want);
    }
  }
}

// Units that are tiny beside the others keep the error budget too: their rows and columns of a
// weight gradient are judged alone, where the large ones cannot hide them.
class Precision : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kHidden = 40;

  // Problems that change() has made; of each gradient, what part() says.
  template <typename Change, typename Part>
  void expect_in_budget(int64_t input, const Change& change, const Part& part) {
    const Case c{"tiny", 12, 6, input, kHidden, Scales::kZero};
    const ForcedKernel forced(GetParam());
    ErrorBudget budgets[kArgs];
    for (int64_t n = 0; n < ErrorBudget::draws(c.steps, c.batch, c.hidden); ++n) {
      Problem p = problem_for(GetParam(), c, static_cast<uint64_t>(1 + n));
      change(p);
      const Outcome truth = run(p.to(at::kDouble), lstm_reference), plain = run(p, lstm_reference);
      const Outcome got = run(p);
      ASSERT_EQ(last_backward().kernel, GetParam());
      for (int i = 3; i < kArgs; ++i) {
        budgets[i].add(part(got.grads[i]), part(plain.grads[i]), part(truth.grads[i]));
      }
    }
    for (int i = 3; i < kArgs; ++i) {
      EXPECT_TRUE(budgets[i].met()) << "d" << kArgNames[i] << " is off by " << budgets[i].error()
                                    << ", plain float32 by " << budgets[i].plain_error();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kernels, Precision, testing::ValuesIn(testable_kernels()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Precision, OfUnitsWhoseOutputIsTiny) {
  // As many inputs as cuda-resident takes into its sweep, and more: the output gate's large bias
  // must not cost every one of them a rounding.
  for (const int64_t input : {int64_t{3}, int64_t{16}, int64_t{20}}) {
    for (const double size : {1e-4, 1e-7, 2e-9, 1e-12}) {
      for (const int64_t first : {int64_t{0}, kHidden / 2}) {  // all of them, and half
        SCOPED_TRACE(testing::Message() << input << " inputs, " << size << " from unit " << first);
        const auto tiny = [&](const Tensor& t) { return t.narrow(-1, first, kHidden - first); };
        expect_in_budget(
            input,
            [&](Problem& p) {
              tiny(p.args[1]).mul_(size);                                  // h0
              tiny(p.args[5].view({4, kHidden})[3]).add_(std::log(size));  // the output gate
            },
            [&](const Tensor& gradient) {
              return gradient.size(-1) == kHidden ? tiny(gradient) : gradient;  // columns of w_hh
            });
      }
    }
  }
}

TEST_P(Precision, OfUnitsWhoseGradientIsTiny) {
  for (const double size : {1e-4, 1e-8, 1e-12}) {
    SCOPED_TRACE(size);
    const auto tiny = [](const Tensor& t, int64_t axis) {
      return t.narrow(axis, kHidden / 2, kHidden / 2);
    };
    expect_in_budget(
        3,
        [&](Problem& p) {  // no h path, where the others' gradients would come in
          tiny(p.dh, 2).mul_(size);
          tiny(p.dc, 2).mul_(size);
        },
        [&](const Tensor& gradient) {  // rows of all
          return tiny(gradient.reshape({4, kHidden, -1}), 1);
        });
  }
}

}  // namespace
}  // namespace hdetach::test
