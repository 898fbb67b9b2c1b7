// One forward or backward call of a kernel, named or chosen, as traced graphs make them.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "hdetach/lstm.h"
#include "hdetach/modules.h"
#include "kernels/kernel.h"
#include "module_run.h"
#include "op/ops.h"
#include "op_calls.h"

namespace hdetach {
namespace {

using namespace module_run;
using Tensors = std::vector<Tensor>;

// A traced graph calls these two without hdetach::lstm around them.
TEST(KernelCalls, StandAlone) {
  static const auto forward = find<decltype(lstm_forward_kernel)>("hdetach::lstm_forward");
  static const auto backward = find<decltype(lstm_backward_kernel)>("hdetach::lstm_backward");
  LSTM module(kInput, kHidden);
  const Tensors w = module->parameters();
  const Tensor x = leaf({kSteps, kBatch, kInput}, 0.9), h0 = leaf({kBatch, kHidden}, 0.4);
  const Tensor scale = at::tensor({1.0f, 0.0f, 0.5f, 1.0f, 0.0f, 1.0f});
  const auto [h, c] = lstm(x, h0, h0, w[0], w[1], w[2], w[3], scale);
  const Tensor dh = wave(h.sizes(), 0.2, at::kFloat);
  const Tensors want = torch::autograd::grad({h}, {x, w[1]}, {dh});

  const c10::NoGradGuard no_grad;
  const auto run = [&](const Tensor& first, bool keep_gates, const char* kernel) {
    return forward.call(first, h0, h0, w[0], w[1], w[2], w[3], {}, keep_gates, kernel);
  };
  const auto [got_h, got_c, gates] = run(x, true, "");
  EXPECT_TRUE(got_h.equal(h) && got_c.equal(c));
  EXPECT_FALSE(std::get<2>(run(x, false, "")).defined());
  const LstmGradients grads =
      backward.call(dh, {}, x, h0, h0, w[0], w[1], w[2], w[3], scale, {}, {}, got_h, got_c, gates,
                    {true, false, false, false, true, false, false}, "");
  EXPECT_TRUE(std::get<0>(grads).equal(want[0]));
  EXPECT_TRUE(std::get<4>(grads).equal(want[1]));
  EXPECT_FALSE(std::get<1>(grads).defined() || std::get<6>(grads).defined());
  EXPECT_EQ(refusal_of([&] { run(x[0], true, ""); }).rfind("[lstm] x has shape [3, 4];", 0), 0u);
  EXPECT_EQ(refusal_of([&] { run(x[0], true, "cpu-generic"); }).rfind("[lstm] x has shape", 0), 0u);
  EXPECT_EQ(refusal_of([&] { run(x, true, "abacus"); }).rfind("[lstm] no kernel 'abacus'", 0), 0u);
}

// Neither an illegal instruction nor a null pointer.
TEST(KernelCalls, AKernelThatCannotRunOrTakeTheShapeIsRefused) {
  static const auto forward = find<decltype(lstm_forward_kernel)>("hdetach::lstm_forward");
  static const Kernel absent = {"absent", Device::kCpu, [] { return "no such machine"; },
                                any_shape};
  static const Kernel small = {"small", Device::kCpu,
                               [] { return static_cast<const char*>(nullptr); },
                               [](const LstmShape&) { return "H must be at most 4"; }};
  LSTM module(kInput, kHidden);
  const Tensors w = module->parameters();
  const Tensor x = leaf({kSteps, kBatch, kInput}, 0.9), h0 = leaf({kBatch, kHidden}, 0.4);
  const Kernel* const before = find_kernel("cpu-amx-emulated");  // other tests have added it
  const c10::NoGradGuard no_grad;
  for (const auto& [kernel, reason] :
       {std::pair{&absent, "no such machine"}, std::pair{&small, "H must be at most 4"}}) {
    add_kernel(kernel);
    const std::string refused = refusal_of(
        [&] { forward.call(x, h0, h0, w[0], w[1], w[2], w[3], {}, true, kernel->name); });
    add_kernel(before);
    EXPECT_EQ(refused, std::string("[lstm] kernel '") + kernel->name +
                           "' cannot be used for T=6, B=3, I=4, H=5: " + reason +
                           "; hdetach::lstm has a reference to fall back on.");
  }
}

}  // namespace
}  // namespace hdetach
