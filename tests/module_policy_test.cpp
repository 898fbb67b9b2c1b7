// hdetach::LSTM with a policy against the reference, one row at a time.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "hdetach/lstm.h"
#include "hdetach/modules.h"
#include "module_run.h"

namespace hdetach {
namespace {

using namespace module_run;

struct RowStates {
  Tensor output, cells;          // [length, D*H] of the last layer
  std::vector<Tensor> h_n, c_n;  // [H] of each layer and direction
};

// One sequence alone through lstm_reference: no batch, no packing, no padding.
RowStates reference_row(LSTM& module, Tensor x, const GradientScales& scales, int64_t row) {
  const int64_t length = x.size(0), directions = module->options.bidirectional() ? 2 : 1;
  const auto p = module->named_parameters();
  const auto scale = [&](const Tensor& s) -> OptionalTensor {
    if (!s.defined()) return {};
    return (s.dim() == 2 ? s.select(1, row) : s).slice(0, 0, length);
  };
  RowStates out;
  for (int64_t layer = 0; layer < module->options.num_layers(); ++layer) {
    std::vector<Tensor> all_h, all_c;
    for (int64_t d = 0; d < directions; ++d) {
      const std::string end = "_l" + std::to_string(layer) + (d ? "_reverse" : "");
      const Tensor zero = at::zeros({1, kHidden}, x.options().requires_grad(false));
      const int64_t entry = layer * directions + d;
      const auto [h, c] =
          lstm_reference((d ? x.flip(0) : x).unsqueeze(1), zero, zero, p["weight_ih" + end],
                         p["weight_hh" + end], p["bias_ih" + end], p["bias_hh" + end],
                         scale(scales.h_scale[entry]), scale(scales.c_scale[entry]));
      out.h_n.push_back(h[length - 1][0]);
      out.c_n.push_back(c[length - 1][0]);
      all_h.push_back(d ? h.squeeze(1).flip(0) : h.squeeze(1));
      all_c.push_back(d ? c.squeeze(1).flip(0) : c.squeeze(1));
    }
    x = at::cat(all_h, 1);
    out.cells = at::cat(all_c, 1);
  }
  out.output = x;
  return out;
}

Result reference(LSTM& module, const Tensor& input, const GradientScales& scales,
                 const std::vector<int64_t>& lengths, std::vector<RowStates>* rows = nullptr) {
  return differentiate(module, input, {}, [&] {
    std::vector<Tensor> outputs, h_n, c_n;
    for (int64_t b = 0; b < kBatch; ++b) {
      const RowStates row =
          reference_row(module, input.select(1, b).slice(0, 0, lengths[b]), scales, b);
      outputs.push_back(row.output);
      h_n.push_back(at::stack(row.h_n));
      c_n.push_back(at::stack(row.c_n));
      if (rows) rows->push_back(row);
    }
    const Tensor output = at::pad_sequence(outputs);  // [T,B,D*H]
    return std::make_tuple(output, LSTMState{at::stack(h_n, 1), at::stack(c_n, 1)});
  });
}

std::vector<GradientPolicy> policies() {
  GradientPolicy base;
  base.detach = 0.5;
  std::vector<GradientPolicy> list(6, base);
  list[1].layers = LayerDraw::kSeparate;
  list[2].per_sample = true;
  list[3].per_sample = true, list[3].layers = LayerDraw::kSeparate;
  list[4].path = Path::kCell;
  list[5].mode = Mode::kDamp;
  return list;
}

constexpr uint64_t kSeed = 11;

template <typename Body>
void for_each_policy(const Body& body) {
  for (Dtype dtype : {at::kFloat, at::kDouble}) {
    for (bool bidirectional : {false, true}) {
      int number = 0;
      for (const GradientPolicy& policy : policies()) {
        torch::manual_seed(7);
        LSTM module(LSTMOptions(kInput, kHidden)
                        .num_layers(2)
                        .bidirectional(bidirectional)
                        .policy(policy)
                        .seed(kSeed));
        module->to(dtype);
        ScaleGenerator generator(kSeed);
        const auto scales = sample(policy, kSteps, kBatch, bidirectional ? 4 : 2, generator);
        body(module, scales, wave({kSteps, kBatch, kInput}, 0.9, dtype).requires_grad_(),
             "policy " + std::to_string(number++));
      }
    }
  }
}

TEST(Policy, TrainingDrawsTheScalesOfItsSeed) {
  for_each_policy(
      [](LSTM& module, const GradientScales& scales, const Tensor& input, const std::string& what) {
        const Result got = run(module, input);
        expect_same(got, reference(module, input, scales, {kSteps, kSteps, kSteps}), what);
        module->eval();
        EXPECT_FALSE(same_gradients(got, run(module, input))) << what << " steers nothing";
      });
}

// The columns of per-sample scales follow the batch as given, not as sorted.
TEST(Policy, PackedRowsTakeTheScalesOfTheirOwnSteps) {
  for_each_policy(
      [](LSTM& module, const GradientScales& scales, const Tensor& input, const std::string& what) {
        const std::vector<int64_t> lengths{2, 1, kSteps};
        const Result got = differentiate(module, input, {}, [&] {
          const auto packed = pack_padded_sequence(input, at::tensor(lengths), false, false);
          const auto [output, state] = module->forward_with_packed_input(packed);
          return std::make_tuple(std::get<0>(pad_packed_sequence(output)), state);
        });
        expect_same(got, reference(module, input, scales, lengths), what);
      });
}

TEST(Policy, GivenScalesEqualDrawnOnesAndReturnTheCells) {
  for_each_policy(
      [](LSTM& module, const GradientScales& scales, const Tensor& input, const std::string& what) {
        std::vector<RowStates> rows;
        reference(module, input, scales, {kSteps, kSteps, kSteps}, &rows);
        LSTMResult states;
        const Result given = differentiate(module, input, {}, [&] {
          states = module->forward_with_scales(input, {}, scales);
          return std::make_tuple(states.output, states.hx);
        });
        EXPECT_TRUE(same_gradients(given, run(module, input))) << what;
        ASSERT_EQ(states.cells.size(), 2u);
        for (int64_t b = 0; b < kBatch; ++b) {
          expect_close(states.cells[1].select(1, b), rows[b].cells, what + " cells");
        }
        module->options.batch_first(true);
        const auto turned = module->forward_with_scales(input.transpose(0, 1), {}, scales);
        EXPECT_TRUE(turned.cells[0].transpose(0, 1).equal(states.cells[0]));
        EXPECT_TRUE(turned.output.transpose(0, 1).equal(states.output));
      });
}

TEST(Policy, ForwardIsBitIdenticalWhateverTheScales) {
  for_each_policy(
      [](LSTM& module, const GradientScales& scales, const Tensor& input, const std::string& what) {
        const auto plain = module->forward_with_scales(input, {}, GradientScales{});
        const auto steered = module->forward_with_scales(input, {}, scales);
        EXPECT_TRUE(steered.output.equal(plain.output)) << what;
        EXPECT_TRUE(std::get<0>(steered.hx).equal(std::get<0>(plain.hx))) << what;
        EXPECT_TRUE(std::get<1>(steered.hx).equal(std::get<1>(plain.hx))) << what;
        EXPECT_TRUE(steered.cells[0].equal(plain.cells[0])) << what;
        EXPECT_TRUE(steered.cells[1].equal(plain.cells[1])) << what;
      });
}

}  // namespace
}  // namespace hdetach
