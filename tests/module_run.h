// Runs a module forward and backward and compares two such runs.
#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hdetach/modules.h"

namespace hdetach::module_run {

using torch::Dtype;
using torch::Tensor;
using torch::nn::utils::rnn::pack_padded_sequence;
using Optional = c10::optional<LSTMState>;

constexpr int64_t kSteps = 6, kBatch = 3, kInput = 4, kHidden = 5;

// Values are of order 1 and every sum here has under 200 terms, so rounding stays within some
// hundreds of units of the last place.
inline double tolerance(const Tensor& t) { return t.scalar_type() == at::kDouble ? 1e-13 : 1e-5; }

inline void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  ASSERT_EQ(got.scalar_type(), want.scalar_type()) << what;
  const double size = std::max(1.0, want.abs().max().item<double>());
  const Tensor difference = got.cpu() - want.cpu();
  // Written so that NaN fails.
  EXPECT_TRUE(difference.abs().max().item<double>() <= tolerance(want) * size) << what;
}

// Fixed values that use none of torch's random numbers.
inline Tensor wave(at::IntArrayRef shape, double frequency, Dtype dtype) {
  const int64_t count = c10::multiply_integers(shape);
  return (at::arange(count, at::kDouble) * frequency + 0.3).sin().view(shape).to(dtype);
}

inline Tensor loss_of(const Tensor& t, double frequency) {
  return (t * wave(t.sizes(), frequency, t.scalar_type()).to(t.device())).sum();
}

struct Result {
  Tensor output, h_n, c_n;
  std::vector<Tensor> grads;  // input, h_0, c_0 (when given), then every parameter
};

// Runs forward and backward; the loss reads the output and both final states.
template <typename Module, typename Forward>
Result differentiate(Module& module, const Tensor& input, const Optional& hx,
                     const Forward& forward, bool twice = false) {
  const auto [output, state] = forward();
  const auto [h_n, c_n] = state;
  std::vector<Tensor> inputs{input};
  if (hx.has_value()) inputs.insert(inputs.end(), {std::get<0>(*hx), std::get<1>(*hx)});
  for (const Tensor& p : module->parameters()) inputs.push_back(p);
  const Tensor loss = loss_of(output, 0.7) + loss_of(h_n, 1.1) + loss_of(c_n, 1.3);
  auto grads = torch::autograd::grad({loss}, inputs, {}, /*retain_graph=*/twice, twice);
  if (twice) {
    Tensor norm = at::zeros({}, loss.options());
    for (const Tensor& g : grads) norm = norm + g.pow(2).sum();
    grads = torch::autograd::grad({norm}, inputs);
  }
  return {output, h_n, c_n, grads};
}

template <typename Module>
Result run(Module& module, const Tensor& input, const Optional& hx = {}) {
  return differentiate(module, input, hx, [&] { return module->forward(input, hx); });
}

inline void expect_same(const Result& got, const Result& want, const std::string& what) {
  expect_close(got.output, want.output, what + " output");
  expect_close(got.h_n, want.h_n, what + " h_n");
  expect_close(got.c_n, want.c_n, what + " c_n");
  ASSERT_EQ(got.grads.size(), want.grads.size()) << what;
  for (size_t i = 0; i < got.grads.size(); ++i) {
    expect_close(got.grads[i], want.grads[i], what + " gradient " + std::to_string(i));
  }
}

inline bool same_gradients(const Result& a, const Result& b) {
  for (size_t i = 0; i < a.grads.size(); ++i) {
    if (!a.grads[i].equal(b.grads[i])) return false;
  }
  return true;
}

}  // namespace hdetach::module_run
