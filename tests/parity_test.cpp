// Every kernel against the reference, on the shared case list: values, gradients, bits, counts.
#include <gtest/gtest.h>

#include <map>

#include "op/error_budget.h"
#include "tests/cases.h"

namespace hdetach::test {
namespace {

struct KernelCase {
  std::string kernel;
  Case problem;
};

std::ostream& operator<<(std::ostream& out, const KernelCase& c) {
  return out << c.kernel << " " << c.problem;
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> list;
  for (const std::string& kernel : testable_kernels()) {
    for (const Case& c : cases_for(kernel)) list.push_back({kernel, c});
  }
  return list;
}

class Parity : public testing::TestWithParam<KernelCase> {};

TEST_P(Parity, StaysInTheErrorBudget) {
  const std::string& kernel = GetParam().kernel;
  const Case& c = GetParam().problem;
  const ForcedKernel forced(kernel);
  const int64_t draws = ErrorBudget::draws(c.steps, c.batch, c.hidden);
  std::map<std::string, ErrorBudget> budgets;
  for (int64_t seed = 1; seed <= draws; ++seed) {
    const Problem p = problem_for(kernel, c, seed);
    const auto truth = named(run(p.to(at::kDouble), lstm_reference));
    const auto plain = named(run(p, lstm_reference)), got = named(run(p));
    ASSERT_EQ(last_forward().kernel, kernel);
    ASSERT_EQ(last_backward().kernel, kernel);
    ASSERT_EQ(got.size(), truth.size());
    for (size_t i = 0; i < truth.size(); ++i) {
      ASSERT_EQ(got[i].value.sizes(), truth[i].value.sizes());
      budgets[got[i].name].add(got[i].value, plain[i].value, truth[i].value);
    }
  }
  for (const auto& [name, budget] : budgets) {
    EXPECT_TRUE(budget.met()) << name << " is off by " << budget.error() << ", plain float32 by "
                              << budget.plain_error() << "; allowed: " << budget.allowed();
    // The headroom, for the XML report.
    RecordProperty(name, std::to_string(budget.error() / budget.plain_error()));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Parity, testing::ValuesIn(kernel_cases()), [](const auto& info) {
  return test_name(info.param.kernel) + "_" + info.param.problem.name;
});

class EachKernel : public testing::TestWithParam<std::string> {
 protected:
  // Calls check(case, problem) for every case with the kernel forced.
  template <typename Check>
  void for_each_case(const Check& check) {
    const ForcedKernel forced(GetParam());
    for (const Case& c : cases_for(GetParam())) {
      SCOPED_TRACE(c.name);
      check(c, problem_for(GetParam(), c));
      ASSERT_EQ(last_forward().kernel, GetParam());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kernels, EachKernel, testing::ValuesIn(testable_kernels()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(EachKernel, GivesTheSameBitsAgainAndWithTwoThreads) {
  for_each_case([](const Case&, const Problem& p) {
    const Threads one(1);
    const Outcome first = run(p);
    expect_same_bits(run(p), first);
    const Threads two(2);
    expect_same_bits(run(p), first);
  });
}

TEST_P(EachKernel, ForwardNeverReadsTheScales) {
  for_each_case([](const Case& c, Problem p) {
    p.h_scale = p.c_scale = Tensor();
    const auto [h, cells] = call(p, make_leaves(p));
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(7);
    for (const Scales kind : {Scales::kSteps, Scales::kRows, Scales::kDamp, Scales::kZero}) {
      p.h_scale = make_scales(kind, c.steps, c.batch, random).to(h.device());
      p.c_scale = make_scales(kind, c.steps, c.batch, random).to(h.device());
      const auto [scaled_h, scaled_cells] = call(p, make_leaves(p));
      EXPECT_TRUE(scaled_h.equal(h));
      EXPECT_TRUE(scaled_cells.equal(cells));
    }
  });
}

// The (step, row) pairs whose gradient goes on into an earlier h.
int64_t kept_pairs(const Case& c, const Problem& p, bool into_h0) {
  int64_t kept = 0;
  const Tensor h_scale = p.h_scale.defined() ? p.h_scale.cpu() : p.h_scale;
  for (int64_t t = into_h0 ? 0 : 1; t < c.steps; ++t) {
    for (int64_t b = 0; b < c.batch; ++b) {
      if (p.lengths.defined() && t >= p.lengths[b].item<int64_t>()) continue;
      float scale = 1.0f;
      if (h_scale.defined()) {
        scale = (h_scale.dim() == 1 ? h_scale[t] : h_scale[t][b]).item<float>();
      }
      if (scale != 0.0f) ++kept;
    }
  }
  return kept;
}

TEST_P(EachKernel, MultipliesOnlyKeptSteps) {
  count_products(true);
  for_each_case([](const Case& c, const Problem& p) {
    if (c.steps * c.batch > 1000) return;  // counting reads one number at a time
    run(p);
    EXPECT_EQ(last_backward().recurrent_products, kept_pairs(c, p, true));
    run(p, lstm, {true, false, true, true, true, true, true});
    EXPECT_EQ(last_backward().recurrent_products, kept_pairs(c, p, false));
  });
  count_products(false);
}

TEST_P(EachKernel, ComputesOnlyWantedGradients) {
  for_each_case([](const Case& c, const Problem& p) {
    if (c.steps > 100) return;
    const Outcome all = run(p);
    if (c.bias) {
      const Tensors leaves = make_leaves(p);
      const auto [h, cells] = call(p, leaves);
      const Tensors grads = gradients(p, h, cells, leaves);
      // Equal, but each its own: an optimiser may scale one in place.
      EXPECT_NE(grads[5].data_ptr(), grads[6].data_ptr());
    }
    for (int i = 0; i < kArgs; ++i) {
      if (!p.args[i].defined()) continue;
      SCOPED_TRACE(kArgNames[i]);
      Wants alone{}, others = kWantAll;
      alone[i] = true;
      others[i] = false;
      const Outcome one = run(p, lstm, alone), rest = run(p, lstm, others);
      for (int j = 0; j < kArgs; ++j) {
        const Tensor& with = one.grads[j];
        const Tensor& without = rest.grads[j];
        ASSERT_EQ(with.defined(), j == i);
        ASSERT_EQ(without.defined(), j != i && p.args[j].defined());
        for (const Tensor& got : {with, without}) {
          EXPECT_TRUE(!got.defined() || got.equal(all.grads[j])) << kArgNames[j];
        }
      }
    }
  });
}

TEST_P(EachKernel, BackwardTwiceGivesTheSameBitsAndAccumulates) {
  for_each_case([](const Case&, const Problem& p) {
    const Tensors leaves = make_leaves(p);
    const auto [h, c] = call(p, leaves);
    const Tensor h_before = h.detach().clone(), c_before = c.detach().clone();
    const Tensors first = gradients(p, h, c, leaves, /*retain_graph=*/true);
    Tensors outputs, arriving;
    if (p.dh.defined()) outputs.push_back(h), arriving.push_back(p.dh);
    if (p.dc.defined()) outputs.push_back(c), arriving.push_back(p.dc);
    torch::autograd::backward(outputs, arriving, /*retain_graph=*/true);
    torch::autograd::backward(outputs, arriving);
    for (int i = 0; i < kArgs; ++i) {
      if (!leaves[i].defined()) continue;
      // Doubling is exact in floating point.
      EXPECT_TRUE(leaves[i].grad().equal(first[i] * 2)) << kArgNames[i];
      EXPECT_TRUE(leaves[i].detach().equal(p.args[i])) << kArgNames[i] << " was overwritten";
    }
    EXPECT_TRUE(h.detach().equal(h_before)) << "h was overwritten";
    EXPECT_TRUE(c.detach().equal(c_before)) << "c was overwritten";
  });
}

// The kernel that saved the state reads it, whatever the environment says by then.
TEST_P(EachKernel, RunsBackwardWhenAnotherIsForcedSince) {
  const Problem p = problem_for(GetParam(), {"switch", 4, 3, 2, 18});
  const Tensors leaves = make_leaves(p);
  const auto [h, c] = [&] {
    const ForcedKernel forced(GetParam());
    return call(p, leaves);
  }();
  const ForcedKernel reference("reference");
  gradients(p, h, c, leaves);
  EXPECT_EQ(last_backward().kernel, GetParam());
}

TEST_P(EachKernel, HonoursTheGradientIntoEitherOutput) {
  const ForcedKernel forced(GetParam());
  for (const Arrives arrives : {Arrives::kH, Arrives::kC}) {
    Case c{"either", 9, 4, 3, 21, Scales::kRows};
    c.arrives = arrives;
    Problem p = problem_for(GetParam(), c);
    const Outcome absent = run(p);
    // An absent gradient is a gradient of zeros.
    (arrives == Arrives::kH ? p.dc : p.dh) = at::zeros_like(p.dh.defined() ? p.dh : p.dc);
    expect_same_bits(absent, run(p));
    EXPECT_GT(absent.grads[3].abs().max().item<float>(), 0.0f);
  }
}

}  // namespace
}  // namespace hdetach::test
