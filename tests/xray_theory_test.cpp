// The paper's theory against autograd, and the split by orders against brute force, in float64.
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "hdetach/lstm.h"
#include "xray/notation.h"
#include "xray/path_orders.h"

namespace hdetach {
namespace {

using at::Tensor;
using xray::Layer;
using xray::Pass;

// Sums of some tens of float64 products: rounding leaves 1e-15.
constexpr double kTolerance = 1e-9;

Layer random_layer(int64_t inputs, int64_t hidden) {
  const auto options = at::TensorOptions(at::kDouble);
  return {at::randn({4 * hidden, inputs}, options), at::randn({4 * hidden, hidden}, options),
          at::randn({4 * hidden}, options)};
}

void expect_relative(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const double size = want.abs().max().item<double>();
  EXPECT_LE((got - want).abs().max().item<double>(), kTolerance * size) << what;
}

OptionalTensor or_none(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

// Scales as the steps of a short sequence may have them: none, one draw of 0 and 1, or anything.
std::vector<Tensor> some_scales(int64_t steps) {
  const Tensor draw = at::rand({steps}, at::kDouble).gt(0.5).to(at::kDouble);
  return {Tensor(), draw, at::rand({steps}, at::kDouble)};
}

TEST(XrayTheory, TheRecursionGivesAutogradsDerivativesOfEveryStateByEveryKindOfWeight) {
  at::manual_seed(1);
  constexpr int64_t kSteps = 5, kBatch = 2, kInputs = 2, kHidden = 3, kRow = 1;
  const Layer layer = random_layer(kInputs, kHidden);
  const Tensor x = at::randn({kSteps, kBatch, kInputs}, at::kDouble);
  const Tensor zeros = at::zeros({kBatch, kHidden}, at::kDouble);
  const Pass pass = xray::run_forward(layer, x, Tensor());
  for (const Tensor& h_scale : some_scales(kSteps)) {
    for (const Tensor& c_scale : some_scales(kSteps)) {
      std::vector<Tensor> weights;  // in the order of the columns: h, x, 1
      for (const Tensor& each : {layer.w_hh, layer.w_ih, layer.bias}) {
        weights.push_back(each.clone().set_requires_grad(true));
      }
      const auto [h, c] = lstm_reference(x, zeros, zeros, weights[1], weights[0], weights[2], {},
                                         or_none(h_scale), or_none(c_scale));
      Tensor want =
          at::zeros({kSteps, 2 * kHidden, 4 * kHidden, kHidden + kInputs + 1}, at::kDouble);
      for (int64_t t = 0; t < kSteps; ++t) {
        for (int64_t unit = 0; unit < 2 * kHidden; ++unit) {
          const Tensor state = (unit < kHidden ? c : h)[t][kRow][unit % kHidden];
          const auto grads = torch::autograd::grad({state}, weights, {}, /*retain_graph=*/true);
          want[t][unit].slice(1, 0, kHidden) = grads[0];
          want[t][unit].slice(1, kHidden, kHidden + kInputs) = grads[1];
          want[t][unit].select(1, kHidden + kInputs) = grads[2];
        }
      }
      for (int64_t gate = 0; gate < 4; ++gate) {
        for (int64_t column = 0; column < kHidden + kInputs + 1; ++column) {
          const int64_t unit = (gate + column) % kHidden;
          const Tensor z = xray::follow(layer, pass, {gate, unit, column}, kRow, h_scale, c_scale);
          expect_relative(z.slice(1, 0, 2 * kHidden),
                          want.select(2, gate * kHidden + unit).select(2, column),
                          "gate " + std::to_string(gate) + " column " + std::to_string(column));
          EXPECT_TRUE(z.slice(1, 2 * kHidden).eq(1).all().item<bool>());
        }
      }
    }
  }
}

// The gradient of <dh, h of the last layer> into all weights and into the states after one step,
// with the op itself. The states of steps before `first` are given, as a start of their own.
struct Direct {
  std::vector<Tensor> weights;  // by layer [4H, H+I+1]
  std::vector<Tensor> states;   // by layer [B, 2H], into (h, c) before step `first`
};

Direct direct_gradient(const std::vector<Layer>& layers, const std::vector<Pass>& passes,
                       const Tensor& dh, const xray::Scales& scales, int64_t first = 0) {
  Tensor x = passes[0].x.slice(0, first);
  std::vector<Tensor> leaves;
  const auto leaf = [&](const Tensor& tensor) {
    leaves.push_back(tensor.clone().set_requires_grad(true));
    return leaves.back();
  };
  const auto rest = [&](const Tensor& scale) {
    return scale.defined() ? OptionalTensor(scale.slice(0, first)) : OptionalTensor();
  };
  for (size_t l = 0; l < layers.size(); ++l) {
    const Tensor w_hh = leaf(layers[l].w_hh), w_ih = leaf(layers[l].w_ih),
                 bias = leaf(layers[l].bias);
    const Tensor h0 = leaf(passes[l].h[first]), c0 = leaf(passes[l].c[first]);
    x = std::get<0>(lstm(x, h0, c0, w_ih, w_hh, bias, {}, rest(scales.h), rest(scales.c)));
  }
  auto grads = torch::autograd::grad({x}, leaves, {dh.slice(0, first)}, c10::nullopt, false,
                                     /*allow_unused=*/true);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = at::zeros_like(leaves[i]);  // every step is detached
  }
  Direct out;
  for (size_t i = 0; i < grads.size(); i += 5) {
    out.weights.push_back(at::cat({grads[i], grads[i + 1], grads[i + 2].unsqueeze(1)}, 1));
    out.states.push_back(at::cat({grads[i + 3], grads[i + 4]}, 1));
  }
  return out;
}

// Every path by brute force: the gradient is linear in the scale of every step, so the part that
// went through h at exactly the steps S is the alternating sum over the subsets of S, and order k
// is the sum over all S of k steps. Returns [T+1] orders of whatever `gradient` gives.
template <class Gradient>
std::vector<Tensor> orders_by_brute_force(int64_t steps, const Tensor& h_scale,
                                          const Gradient& gradient) {
  std::vector<Tensor> at_subset;
  for (int64_t subset = 0; subset < (1 << steps); ++subset) {
    Tensor scale = h_scale.clone();
    for (int64_t t = 0; t < steps; ++t) {
      if (((subset >> t) & 1) == 0) scale[t] = 0;
    }
    at_subset.push_back(gradient(scale));
  }
  std::vector<Tensor> orders(steps + 1, at::zeros_like(at_subset[0]));
  for (int64_t set = 0; set < (1 << steps); ++set) {
    const int order = __builtin_popcountll(set);
    for (int64_t part = set;; part = (part - 1) & set) {
      const bool odd = (order - __builtin_popcountll(part)) % 2 == 1;
      orders[order] = orders[order] + (odd ? -at_subset[part] : at_subset[part]);
      if (part == 0) break;
    }
  }
  return orders;
}

class XrayOrders : public testing::TestWithParam<int> {  // layers
 protected:
  XrayOrders() {
    at::manual_seed(2);
    Tensor x = at::randn({kSteps, kBatch, 2}, at::kDouble);
    for (int l = 0; l < GetParam(); ++l) {
      layers_.push_back(random_layer(x.size(2), kHidden));
      passes_.push_back(xray::run_forward(layers_.back(), x, Tensor()));
      x = passes_.back().h.slice(0, 1);
    }
    dh_ = at::randn({kSteps, kBatch, kHidden}, at::kDouble);
  }

  static constexpr int64_t kSteps = 5, kBatch = 2, kHidden = 3, kHighest = 2;
  std::vector<Layer> layers_;
  std::vector<Pass> passes_;
  Tensor dh_;
};
INSTANTIATE_TEST_SUITE_P(Layers, XrayOrders, testing::Values(1, 2));

TEST_P(XrayOrders, OfTheWeightsAreThoseOfBruteForce) {
  const xray::Scales scales{at::rand({kSteps}, at::kDouble), at::rand({kSteps}, at::kDouble)};
  const auto got = xray::split_by_order(layers_, passes_, dh_, scales, kHighest, true);
  for (size_t l = 0; l < layers_.size(); ++l) {
    const auto want = orders_by_brute_force(kSteps, scales.h, [&](const Tensor& h_scale) {
      return direct_gradient(layers_, passes_, dh_, {h_scale, scales.c}).weights[l];
    });
    for (int64_t k = 0; k <= kHighest; ++k) {
      expect_relative(got.weights[l][k], want[k], "order " + std::to_string(k));
    }
    Tensor rest = at::zeros_like(want[0]);
    for (int64_t k = kHighest + 1; k <= kSteps; ++k) rest = rest + want[k];
    expect_relative(got.weights[l][kHighest + 1], rest, "rest");
  }
}

TEST_P(XrayOrders, OfTheStatesAreThoseOfBruteForce) {
  const xray::Scales scales{at::rand({kSteps}, at::kDouble), at::rand({kSteps}, at::kDouble)};
  // A loss of the last step alone: after other steps the states' gradient is what the rest of the
  // sequence sends into its start.
  dh_.slice(0, 0, kSteps - 1).zero_();
  const auto got = xray::split_by_order(layers_, passes_, dh_, scales, kHighest, false);
  EXPECT_FALSE(got.weights[0].defined());
  for (int64_t t = 0; t < kSteps - 1; ++t) {
    const auto want = orders_by_brute_force(kSteps, scales.h, [&](const Tensor& h_scale) {
      return at::cat(direct_gradient(layers_, passes_, dh_, {h_scale, scales.c}, t + 1).states, 1);
    });
    const auto squares = [](const Tensor& gradient) { return (gradient * gradient).sum(1); };
    Tensor rest = at::zeros_like(want[0]), all = rest;
    for (int64_t k = 0; k <= kSteps; ++k) {
      all = all + want[k];
      if (k <= kHighest) {
        expect_relative(got.state_squares[k][t], squares(want[k]), "order " + std::to_string(k));
      } else {
        rest = rest + want[k];
      }
    }
    expect_relative(got.state_squares[kHighest + 1][t], squares(rest), "rest");
    expect_relative(got.state_squares[kHighest + 2][t], squares(all), "all");
  }
}

TEST_P(XrayOrders, AddUpToTheGradientOfTheOp) {
  for (const Tensor& h_scale : some_scales(kSteps)) {
    const auto got = xray::split_by_order(layers_, passes_, dh_, {h_scale, Tensor()}, 0, true);
    const Direct want = direct_gradient(layers_, passes_, dh_, {h_scale, Tensor()});
    for (size_t l = 0; l < layers_.size(); ++l) {
      expect_relative(got.weights[l].sum(0), want.weights[l], "layer " + std::to_string(l));
    }
  }
}

// More steps than one stretch of the sweep holds, and the kernel that trains.
TEST(XrayOrders32, AddUpToTheGradientOfTheFloat32KernelOverManySteps) {
  at::manual_seed(3);
  constexpr int64_t kSteps = 50, kBatch = 4, kHidden = 16;
  Layer layer = random_layer(1, kHidden);
  layer.w_hh = layer.w_hh / 4;
  const Pass pass = xray::run_forward(layer, at::randn({kSteps, kBatch, 1}, at::kDouble), Tensor());
  const Tensor dh = at::randn({kSteps, kBatch, kHidden}, at::kDouble);
  const Tensor keep = at::full({kSteps}, 0.75, at::kDouble);
  const Tensor got =
      xray::split_by_order({layer}, {pass}, dh, {keep, Tensor()}, 3, true).weights[0].sum(0);
  const auto single = [](const Tensor& tensor) { return tensor.to(at::kFloat); };
  const Layer layer32{single(layer.w_ih), single(layer.w_hh), single(layer.bias)};
  const Pass pass32{single(pass.x), single(pass.h), single(pass.c)};
  const Tensor want =
      direct_gradient({layer32}, {pass32}, single(dh), {single(keep), Tensor()}).weights[0];
  // Float32 rounds at 6e-8 in each of 50 steps.
  EXPECT_LE((got - want).norm().item<double>(), 1e-5 * want.norm().item<double>());
}

}  // namespace
}  // namespace hdetach
