// The kernels run on the caller's stream. The inputs are zeros until a side stream, after a long
// wait, writes the real ones: work on any other stream would read the zeros.
#ifdef HDETACH_WITH_CUDA

#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "op/cuda_stream.h"
#include "tests/cases.h"

namespace hdetach::test {
namespace {

constexpr int64_t kDelay = 400'000'000;  // cycles: 0.2 s of a 2 GHz clock, longer than any launch

std::vector<std::string> cuda_kernels() {
  std::vector<std::string> names;
  for (const std::string& kernel : testable_kernels()) {
    if (on_cuda(kernel)) names.push_back(kernel);
  }
  return names;
}

// The tensors of a problem that lie on the GPU.
Tensors on_gpu(const Problem& p) {
  Tensors list = p.args;
  for (const Tensor& t : {p.h_scale, p.c_scale, p.dh, p.dc}) list.push_back(t);
  return list;
}

Problem zeros_like(const Problem& p) {
  const auto zeros = [](const Tensor& t) { return t.defined() ? at::zeros_like(t) : t; };
  Problem out{{}, zeros(p.h_scale), zeros(p.c_scale), p.lengths, zeros(p.dh), zeros(p.dc)};
  for (const Tensor& t : p.args) out.args.push_back(zeros(t));
  return out;
}

class CudaStream : public testing::TestWithParam<std::string> {
 protected:
  // Without lengths: bringing them to the device would wait for the stream, and any other would
  // then find the inputs written.
  const Case case_{"stream", 6, 5, 3, 100, Scales::kRows, Scales::kRows};
  const ForcedKernel forced_{GetParam()};
  const Problem problem_ = problem_for(GetParam(), case_);
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaStream);
INSTANTIATE_TEST_SUITE_P(Kernels, CudaStream, testing::ValuesIn(cuda_kernels()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(CudaStream, OfTheCallerIsUsed) {
  const Outcome want = run(problem_);
  const Problem late = zeros_like(problem_);
  const Tensors from = on_gpu(problem_), to = on_gpu(late);
  const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();
  ASSERT_NE(current_stream(), static_cast<void*>(side.stream()));
  const c10::cuda::CUDAStreamGuard guard(side);
  ASSERT_EQ(current_stream(), static_cast<void*>(side.stream()));
  run(problem_);  // the stream has its memory now: to ask the driver for more could mean to wait
  cuda_synchronize();
  at::cuda::sleep(kDelay);
  for (size_t i = 0; i < from.size(); ++i) {
    if (to[i].defined()) to[i].copy_(from[i], /*non_blocking=*/true);
  }
  ASSERT_FALSE(side.query()) << "the wait was over before the op was called";
  const Tensors leaves = make_leaves(late);
  const auto [h, c] = call(late, leaves);
  const Tensors grads = gradients(late, h, c, leaves);
  EXPECT_FALSE(side.query()) << "the op waited for the device";
  const Outcome got = outcome(h, c, grads);
  EXPECT_EQ(last_backward().kernel, GetParam());
  expect_same_bits(got, want);
}

// Autograd runs the backward pass on the stream of the forward pass and orders the streams.
TEST_P(CudaStream, OfTheForwardPassIsTheBackwardsToo) {
  const Outcome want = run(problem_);
  const Tensors leaves = make_leaves(problem_);
  const Problem late = zeros_like(problem_);
  cuda_synchronize();
  std::tuple<Tensor, Tensor> states;
  {
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
    states = call(problem_, leaves);
  }
  at::cuda::sleep(kDelay);
  late.dh.copy_(problem_.dh, /*non_blocking=*/true);
  late.dc.copy_(problem_.dc, /*non_blocking=*/true);
  Problem arriving = problem_;
  arriving.dh = late.dh;
  arriving.dc = late.dc;
  const Tensors grads = gradients(arriving, std::get<0>(states), std::get<1>(states), leaves);
  cuda_synchronize();
  expect_same_bits(outcome(std::get<0>(states), std::get<1>(states), grads), want);
}

}  // namespace
}  // namespace hdetach::test

#endif
