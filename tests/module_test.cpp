// hdetach::LSTM without a policy against torch::nn::LSTM.
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "hdetach/modules.h"
#include "module_run.h"

namespace hdetach {
namespace {

using namespace module_run;

template <typename Module>
Result run_packed(Module& module, const Tensor& input, const Tensor& lengths, bool sorted,
                  const Optional& hx = {}, bool twice = false) {
  return differentiate(
      module, input, hx,
      [&] {
        const auto packed =
            pack_padded_sequence(input, lengths, module->options.batch_first(), sorted);
        const auto [output, state] = module->forward_with_packed_input(packed, hx);
        EXPECT_TRUE(output.batch_sizes().equal(packed.batch_sizes()));
        EXPECT_EQ(output.sorted_indices().defined(), !sorted);
        if (!sorted) {
          EXPECT_TRUE(output.unsorted_indices().equal(packed.unsorted_indices()));
        }
        return std::make_tuple(output.data(), state);
      },
      twice);
}

torch::nn::LSTMOptions nn_options(int64_t layers, int bits) {
  return torch::nn::LSTMOptions(kInput, kHidden)
      .num_layers(layers)
      .bias((bits & 1) == 0)
      .batch_first((bits & 2) != 0)
      .bidirectional((bits & 4) != 0);
}

struct Pair {
  torch::nn::LSTM nn{nullptr};
  LSTM ours{nullptr};
};

// Both modules from the same seed; checks that names, weights and random numbers used agree.
Pair make_pair(const torch::nn::LSTMOptions& options, Dtype dtype) {
  Pair pair;
  torch::manual_seed(7);
  pair.nn = torch::nn::LSTM(options);
  const Tensor after_nn = at::rand({1});
  torch::manual_seed(7);
  pair.ours = LSTM(options);
  EXPECT_TRUE(at::rand({1}).equal(after_nn));
  const auto want = pair.nn->named_parameters(), got = pair.ours->named_parameters();
  EXPECT_EQ(got.keys(), want.keys());
  for (const auto& item : want) EXPECT_TRUE(got[item.key()].equal(item.value())) << item.key();
  pair.nn->to(dtype);
  pair.ours->to(dtype);
  return pair;
}

Tensor make_input(const torch::nn::LSTMOptions& options, Dtype dtype) {
  return (options.batch_first() ? wave({kBatch, kSteps, kInput}, 0.9, dtype)
                                : wave({kSteps, kBatch, kInput}, 0.9, dtype))
      .requires_grad_();
}

LSTMState make_hx(int64_t states, Dtype dtype) {
  return {wave({states, kBatch, kHidden}, 0.5, dtype).requires_grad_(),
          wave({states, kBatch, kHidden}, 1.7, dtype).requires_grad_()};
}

// Every combination of dtype, layers, bias, batch_first, bidirectional, dropout and given states.
template <typename Body>
void for_each_option(const Body& body) {
  for (Dtype dtype : {at::kFloat, at::kDouble}) {
    for (int64_t layers : {1, 2}) {
      for (int bits = 0; bits < 8; ++bits) {
        for (double dropout : {0.0, 0.5, 1.0}) {
          if (layers == 1 && dropout > 0) continue;
          const auto options = nn_options(layers, bits).dropout(dropout);
          Pair pair = make_pair(options, dtype);
          for (bool given : {false, true}) {
            Optional hx;
            if (given) hx = make_hx(layers * (options.bidirectional() ? 2 : 1), dtype);
            std::ostringstream what;
            what << pair.nn << (given ? " hx " : " ") << dtype;
            body(pair, make_input(options, dtype), hx, what.str());
          }
        }
      }
    }
  }
}

TEST(Module, IsAnNnLstmWithoutAPolicy) {
  for_each_option([](Pair& pair, const Tensor& input, const Optional& hx, const std::string& what) {
    torch::manual_seed(1);  // the same dropout
    const Result want = run(pair.nn, input, hx);
    torch::manual_seed(1);
    expect_same(run(pair.ours, input, hx), want, what);
  });
}

TEST(Module, IsAnNnLstmInEvalMode) {
  for_each_option([](Pair& pair, const Tensor& input, const Optional& hx, const std::string& what) {
    pair.nn->eval();
    pair.ours->eval();
    pair.ours->options.policy().detach = 1.0;
    torch::manual_seed(1);
    const Tensor next = at::rand({1});
    torch::manual_seed(1);
    expect_same(run(pair.ours, input, hx), run(pair.nn, input, hx), what);
    EXPECT_TRUE(at::rand({1}).equal(next)) << "torch's random numbers moved in eval mode";
  });
}

TEST(Module, PackedSequencesAreThoseOfNnLstm) {
  for_each_option([](Pair& pair, const Tensor& input, const Optional& hx, const std::string& what) {
    // The last has no short row.
    for (const Tensor& lengths :
         {at::tensor({6, 3, 1}), at::tensor({2, 1, 6}), at::tensor({6, 6, 6})}) {
      const bool sorted = lengths[1].item<int64_t>() == 3;
      torch::manual_seed(1);
      const Result want = run_packed(pair.nn, input, lengths, sorted, hx);
      torch::manual_seed(1);
      expect_same(run_packed(pair.ours, input, lengths, sorted, hx), want,
                  c10::str(what, " lengths ", lengths));
    }
  });
}

TEST(Module, SecondGradientsOfPackedSequences) {
  const auto options = nn_options(2, 4);
  Pair pair = make_pair(options, at::kDouble);
  const Tensor input = make_input(options, at::kDouble), lengths = at::tensor({2, 1, 6});
  const Optional hx = make_hx(4, at::kDouble);
  expect_same(run_packed(pair.ours, input, lengths, false, hx, /*twice=*/true),
              run_packed(pair.nn, input, lengths, false, hx, /*twice=*/true), "twice");
}

TEST(Module, UnbatchedInputIsABatchOfOne) {
  for (int bits = 0; bits < 8; ++bits) {
    const auto options = nn_options(2, bits).batch_first(false);
    Pair pair = make_pair(options, at::kFloat);
    pair.ours->options.batch_first((bits & 2) != 0);  // has no say over unbatched input
    const Tensor input = wave({kSteps, kInput}, 0.9, at::kFloat).requires_grad_();
    const int64_t states = options.bidirectional() ? 4 : 2;
    const LSTMState hx{wave({states, kHidden}, 0.5, at::kFloat).requires_grad_(),
                       wave({states, kHidden}, 1.7, at::kFloat).requires_grad_()};
    const Result want = differentiate(pair.nn, input, hx, [&] {
      const LSTMState batch{std::get<0>(hx).unsqueeze(1), std::get<1>(hx).unsqueeze(1)};
      const auto [output, state] = pair.nn->forward(input.unsqueeze(1), batch);
      return std::make_tuple(output.squeeze(1), LSTMState{std::get<0>(state).squeeze(1),
                                                          std::get<1>(state).squeeze(1)});
    });
    expect_same(run(pair.ours, input, hx), want, "unbatched");
    EXPECT_EQ(std::get<1>(std::get<1>(pair.ours->forward(input))).dim(), 2);
  }
}

// Code written for torch::nn::LSTM, as it is found: every public member of it.
template <typename Lstm>
void use_as_nn_lstm() {
  torch::manual_seed(3);
  Lstm lstm(torch::nn::LSTMOptions(kInput, kHidden).num_layers(2).bidirectional(true));
  lstm->flatten_parameters();
  EXPECT_EQ(lstm->options_base.mode().index(), 0u);  // of its kinds kLSTM is the first
  EXPECT_EQ(lstm->options_base.input_size(), kInput);
  EXPECT_EQ(lstm->options_base.hidden_size(), kHidden);
  EXPECT_EQ(lstm->options_base.num_layers(), 2);
  EXPECT_TRUE(lstm->options_base.bias());
  EXPECT_FALSE(lstm->options_base.batch_first());
  EXPECT_EQ(lstm->options_base.dropout(), 0.0);
  EXPECT_TRUE(lstm->options_base.bidirectional());
  EXPECT_EQ(lstm->options_base.proj_size(), 0);
  EXPECT_EQ(lstm->options.hidden_size(), lstm->options_base.hidden_size());

  const std::vector<Tensor> weights = lstm->all_weights(), parameters = lstm->parameters();
  ASSERT_EQ(weights.size(), 16u);
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(weights[i].is_same(parameters[i])) << i;
  const Tensor before = weights[0].detach().clone();
  lstm->reset_parameters();
  EXPECT_FALSE(weights[0].equal(before));

  const Tensor input = wave({kSteps, kBatch, kInput}, 0.9, at::kFloat);
  const auto [output, state] = lstm(input);
  const auto [h, c] = state;
  EXPECT_EQ(output.sizes(), at::IntArrayRef({kSteps, kBatch, 2 * kHidden}));
  EXPECT_TRUE(std::get<0>(lstm->forward(input, std::make_tuple(h, c))).defined());
  const auto packed = pack_padded_sequence(input, at::tensor({6, 3, 1}));
  EXPECT_EQ(std::get<0>(lstm->forward_with_packed_input(packed)).data().size(0), 10);

  const auto copy = std::dynamic_pointer_cast<typename Lstm::Impl>(lstm->clone());
  EXPECT_EQ(copy->options_base.num_layers(), 2);
  lstm->to(at::kDouble);
  EXPECT_EQ(lstm->all_weights()[0].dtype(), at::kDouble);
  std::ostringstream text;
  text << lstm;
  EXPECT_NE(text.str().find("LSTM(input_size="), std::string::npos);
}

TEST(Module, CodeWrittenForNnLstmCompilesAndRuns) {
  use_as_nn_lstm<torch::nn::LSTM>();
  use_as_nn_lstm<LSTM>();
}

TEST(Module, OptionsBaseFollowsTheOptions) {
  LSTM lstm(LSTMOptions(kInput, kHidden));
  lstm->options.batch_first(true);
  lstm->forward(wave({kBatch, kSteps, kInput}, 0.9, at::kFloat));
  EXPECT_TRUE(lstm->options_base.batch_first());
  lstm->options.num_layers(2);
  lstm = LSTM(lstm->options);
  EXPECT_EQ(lstm->options_base.num_layers(), 2);
}

}  // namespace
}  // namespace hdetach
