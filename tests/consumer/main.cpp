// Uses the installed headers and library alone: the op, its gradient, and the module.
#include <ATen/Functions.h>
#include <hdetach/backend.h>
#include <hdetach/gradient_scales.h>
#include <hdetach/lstm.h>
#include <hdetach/modules.h>

#include <cstdio>

int main() {
  const int64_t steps = 5, batch = 3, input = 2, hidden = 4;
  const at::Tensor x = at::randn({steps, batch, input});
  const at::Tensor w_hh = (at::randn({4 * hidden, hidden}) * 0.5).requires_grad_();
  const auto [h, c] =
      hdetach::lstm(x, at::zeros({batch, hidden}), at::zeros({batch, hidden}),
                    at::randn({4 * hidden, input}), w_hh, {}, {}, /*h_scale=*/at::zeros({steps}));
  (h.sum() + c.sum()).backward();
  const bool op_works = h.size(0) == steps && w_hh.grad().abs().sum().item<float>() > 0.0f &&
                        hdetach::last_backward().recurrent_products == 0;

  hdetach::GradientPolicy policy;
  policy.detach = 0.25;
  hdetach::LSTM module(hdetach::LSTMOptions(input, hidden).num_layers(2).policy(policy));
  const auto [output, state] = module->forward(x);
  output.sum().backward();
  const bool module_works = output.size(2) == hidden &&
                            module->named_parameters()["weight_hh_l1"].grad().defined() &&
                            std::get<0>(state).size(0) == 2;

  std::printf("kernel %s, op %s, module %s\n", hdetach::active_kernel().c_str(),
              op_works ? "works" : "FAILED", module_works ? "works" : "FAILED");
  return op_works && module_works ? 0 : 1;
}
