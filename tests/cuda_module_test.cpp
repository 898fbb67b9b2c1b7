// hdetach::LSTM on a GPU: the same draws and the same gradients as on the CPU.
#include "kernels/cuda/device.h"
#include "tests/module_run.h"

namespace hdetach::module_run {
namespace {

class CudaModule : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_present()) GTEST_SKIP() << "no CUDA device: the module is NOT tested on one here";
  }

  // Two layers in both directions, steered row by row.
  static LSTM make_module() {
    LSTMOptions options(kInput, kHidden);
    options.num_layers(2).bidirectional(true).seed(3);
    GradientPolicy policy;
    policy.detach = 0.5;
    policy.per_sample = true;
    options.policy(policy);
    LSTM module(options);
    int index = 0;
    const c10::NoGradGuard no_grad;
    for (Tensor& p : module->parameters()) {
      p.copy_(wave(p.sizes(), 0.9 + 0.1 * ++index, at::kFloat) * 0.4);
    }
    return module;
  }

  static Tensor make_input(at::Device device) {
    return wave({kSteps, kBatch, kInput}, 0.37, at::kFloat).to(device).requires_grad_();
  }
};

TEST_F(CudaModule, DoesWhatItDoesOnTheCpu) {
  LSTM on_cpu = make_module(), on_gpu = make_module();
  on_gpu->to(at::Device(at::kCUDA));
  for (int draw = 0; draw < 2; ++draw) {
    const Result want = run(on_cpu, make_input(at::kCPU));
    const Result got = run(on_gpu, make_input(at::kCUDA));
    EXPECT_TRUE(got.output.is_cuda());
    expect_same(got, want, "draw " + std::to_string(draw));
  }
}

TEST_F(CudaModule, TakesPackedSequences) {
  LSTM on_cpu = make_module(), on_gpu = make_module();
  on_gpu->to(at::Device(at::kCUDA));
  const Tensor lengths = at::tensor({6, 2, 4}, at::kLong);
  const auto run_packed = [&](LSTM& module, const Tensor& input) {
    const auto packed = pack_padded_sequence(input, lengths, /*batch_first=*/false,
                                             /*enforce_sorted=*/false);
    return differentiate(module, input, {}, [&] {
      const auto [output, state] = module->forward_with_packed_input(packed);
      return std::make_tuple(output.data(), state);
    });
  };
  expect_same(run_packed(on_gpu, make_input(at::kCUDA)), run_packed(on_cpu, make_input(at::kCPU)),
              "packed");
}

}  // namespace
}  // namespace hdetach::module_run
