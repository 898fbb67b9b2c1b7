// What is particular to CUDA tensors: which kernel they get, where the results lie, what is
// refused. Values, gradients and bits are the business of the parity, method, gradient and sequence
// tests, which run every kernel of this machine.
#include <c10/util/Exception.h>

#include <iostream>

#include "kernels/cuda/sizes.h"
#include "tests/cases.h"

namespace hdetach::test {
namespace {

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_present()) GTEST_SKIP() << "no CUDA device: GPU kernels are NOT tested here";
  }
};

const Case kSmall{"small", 5, 3, 2, 20, Scales::kSteps};

std::string forward_kernel(const Problem& p) {
  call(p, p.args);
  return last_forward().kernel;
}

std::string message_of(const Problem& p) {
  try {
    call(p, p.args);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

// Beyond these an index would overflow, and weight gradients were zeros without a word.
TEST(CudaSizes, TooLargeOnesAreRefused) {
  const auto reason = [](int64_t steps, int64_t batch, int64_t input, int64_t hidden) {
    const char* text = cuda::too_large({steps, batch, input, hidden});
    return std::string(text == nullptr ? "" : text);
  };
  constexpr int64_t kRows = 2147475456;  // 2^31 - 8192
  EXPECT_EQ(reason(1, kRows, 1, 1), "");
  EXPECT_EQ(reason(1 << 15, 65535, 1, 1), "");
  for (const auto& [steps, batch] : {std::pair<int64_t, int64_t>{1, kRows + 1},
                                     {kRows + 1, 1},
                                     {1 << 16, 1 << 15},
                                     {1 << 16, 1 << 16},
                                     {1 << 16, (1 << 16) + 1}}) {
    EXPECT_NE(reason(steps, batch, 1, 1).find("T * B"), std::string::npos)
        << "T=" << steps << ", B=" << batch;
  }
  // 511 by 128 and 512 by 128 tiles of dw_hh; 16 by 4,095 and 16 by 4,096 of dw_ih.
  EXPECT_EQ(reason(5, 3, 10, 16352), "");
  EXPECT_NE(reason(5, 3, 10, 16353).find("weights"), std::string::npos);
  EXPECT_EQ(reason(5, 3, 524160, 512), "");
  EXPECT_NE(reason(5, 3, 524161, 512).find("weights"), std::string::npos);
}

TEST_F(Cuda, IsTested) {
  const std::vector<std::string> tested = testable_kernels();
  const size_t all = cases().size() + cuda_cases().size();
  for (const std::string kernel : {"cuda-resident", "cuda-steps"}) {
    const bool found = std::find(tested.begin(), tested.end(), kernel) != tested.end();
    ASSERT_TRUE(found) << kernel << " cannot run on this GPU";
    const size_t taken = cases_for(kernel).size();
    std::cout << kernel << " takes " << taken << " of " << all << " cases\n";
    EXPECT_GE(taken, kernel == "cuda-steps" ? all : cases().size() / 2);  // steps take any size
  }
}

TEST_F(Cuda, TheKernelThatRunsIsTheOneAnnounced) {
  for (const Case& c : cases_for("cuda-steps")) {
    SCOPED_TRACE(c.name);
    const Problem p = make_problem(c).to(at::Device(at::kCUDA));
    const std::string announced = cuda_kernel_for(c.steps, c.batch, c.input, c.hidden);
    EXPECT_TRUE(on_cuda(announced)) << announced;
    run(p);
    EXPECT_EQ(last_forward().kernel, announced);
    EXPECT_EQ(last_backward().kernel, announced);
  }
}

TEST_F(Cuda, AForcedKernelAppliesToItsDeviceAlone) {
  const Problem cpu = make_problem(kSmall), gpu = cpu.to(at::Device(at::kCUDA));
  const std::string of_cpu = forward_kernel(cpu), of_gpu = forward_kernel(gpu);
  {
    const ForcedKernel forced("cpu-generic");
    EXPECT_EQ(forward_kernel(cpu), "cpu-generic");
    EXPECT_EQ(forward_kernel(gpu), of_gpu);
  }
  {
    const ForcedKernel forced("cuda-steps");
    EXPECT_EQ(forward_kernel(cpu), of_cpu);
    EXPECT_EQ(forward_kernel(gpu), "cuda-steps");
  }
  const ForcedKernel forced("reference");
  EXPECT_EQ(forward_kernel(cpu), "reference");
  EXPECT_EQ(forward_kernel(gpu), "reference");
}

// A grid has at most 65,535 blocks in its second dimension, of 128 rows each in the products with
// more than 16 inputs.
TEST_F(Cuda, AnyNumberOfRowsIsTaken) {
  const Case many{"many rows", 3, 2796170, 17, 4, Scales::kSteps};
  ASSERT_GT(many.steps * many.batch, 65535 * 128);
  const Problem all = make_problem(many).to(at::Device(at::kCUDA));
  // Rows know nothing of each other: the last ones alone give the same.
  const auto last_rows = [&](const Tensor& t, int64_t axis) {
    return t.narrow(axis, many.batch - 64, 64);
  };
  Problem last = all;
  for (int i = 0; i < 3; ++i) last.args[i] = last_rows(all.args[i], i == 0);
  last.dh = last_rows(all.dh, 1);
  last.dc = last_rows(all.dc, 1);
  // What arrives at the others is zero, so that the weights have the gradients of the last ones.
  Problem given = all;
  given.dh = at::zeros_like(all.dh);
  given.dc = at::zeros_like(all.dc);
  last_rows(given.dh, 1).copy_(last.dh);
  last_rows(given.dc, 1).copy_(last.dc);
  const Outcome got = run(given), want = run(last);
  expect_close(last_rows(got.h, 1), want.h, "h");
  expect_close(last_rows(got.c, 1), want.c, "c");
  for (int i = 0; i < kArgs; ++i) {
    const Tensor& grad = got.grads[i];
    expect_close(i < 3 ? last_rows(grad, i == 0) : grad, want.grads[i], kArgNames[i]);
  }
}

TEST_F(Cuda, Float64TakesTheReference) {
  const Problem p = make_problem(kSmall).to(at::kDouble).to(at::Device(at::kCUDA));
  EXPECT_EQ(forward_kernel(p), "reference");
}

TEST_F(Cuda, ResultsLieWhereTheInputsDo) {
  const Problem p = make_problem(kSmall).to(at::Device(at::kCUDA));
  const Tensors leaves = make_leaves(p);
  const auto [h, c] = call(p, leaves);
  EXPECT_EQ(h.device(), p.args[0].device());
  EXPECT_EQ(c.device(), p.args[0].device());
  for (const Tensor& grad : gradients(p, h, c, leaves)) {
    EXPECT_EQ(grad.device(), p.args[0].device());
  }
}

// More rows than the GPU holds at a time: blocks share an SM and their warps drift apart, so that a
// warp that nobody waits for gets lost, sooner or later.
TEST_F(Cuda, ManyRowsHaveTheBitsOfFew) {
  constexpr int kMany = 1200, kFew = 100, kCalls = 300;
  for (const int hidden : {20, 60, 100, 128, 150, 190, 250}) {
    SCOPED_TRACE(hidden);
    const Problem many =
        make_problem({"many", 150, kMany, 1, hidden, Scales::kNone}).to(at::Device(at::kCUDA));
    Problem few = many;
    few.args[0] = many.args[0].narrow(1, kMany - kFew, kFew);
    for (const int state : {1, 2}) few.args[state] = many.args[state].narrow(0, kMany - kFew, kFew);
    const auto [few_h, few_c] = call(few, few.args);
    Tensor same = at::ones({}, few_h.options().dtype(at::kBool));
    for (int i = 0; i < kCalls; ++i) {
      const auto [h, c] = call(many, many.args);
      same.logical_and_(h.narrow(1, kMany - kFew, kFew).eq(few_h).all());
      same.logical_and_(c.narrow(1, kMany - kFew, kFew).eq(few_c).all());
    }
    EXPECT_TRUE(same.item<bool>());
  }
}

TEST_F(Cuda, RefusesTensorsOfTwoDevices) {
  const Problem cpu = make_problem(kSmall), gpu = cpu.to(at::Device(at::kCUDA));
  ASSERT_EQ(message_of(gpu), "");
  for (int i = 1; i < kArgs; ++i) {
    Problem mixed = gpu;
    mixed.args[i] = cpu.args[i];
    const std::string wanted = std::string("[lstm] ") + kArgNames[i] + " is on cpu";
    EXPECT_EQ(message_of(mixed).rfind(wanted, 0), 0u) << message_of(mixed);
  }
  Problem mixed = gpu;
  mixed.h_scale = cpu.h_scale;
  EXPECT_EQ(message_of(mixed).rfind("[lstm] h_scale is on cpu", 0), 0u) << message_of(mixed);
}

}  // namespace
}  // namespace hdetach::test
