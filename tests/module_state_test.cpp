// What hdetach::LSTM keeps: its draws, its weights, its archives; and what it refuses.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/rnn.h>
#include <torch/serialize.h>
#include <torch/utils.h>

#include <limits>
#include <sstream>
#include <string>

#include "hdetach/modules.h"

namespace hdetach {
namespace {

using torch::Tensor;
using torch::nn::utils::rnn::PackedSequence;

constexpr int64_t kSteps = 40, kBatch = 3, kInput = 4, kHidden = 5;

LSTMOptions detaching(double detach = 0.5) {
  GradientPolicy policy;
  policy.detach = detach;
  return LSTMOptions(kInput, kHidden).policy(policy);
}

Tensor make_input() {
  const Tensor index = at::arange(kSteps * kBatch * kInput, at::kFloat);
  return (index * 0.9).sin().view({kSteps, kBatch, kInput});
}

// The gradient of one draw: equal for equal draws, since every kernel is deterministic.
Tensor gradient(LSTM& module) {
  module->zero_grad();
  std::get<0>(module->forward(make_input())).pow(2).sum().backward();
  return module->named_parameters()["weight_hh_l0"].grad().clone();
}

LSTM module_from(const LSTMOptions& options) {
  torch::manual_seed(7);
  return LSTM(options);
}

template <typename Call>
void expect_error(const Call& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no error, wanted: " << text;
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(ModuleDraws, SeedDecidesThem) {
  LSTM first = module_from(detaching().seed(1)), second = module_from(detaching().seed(1));
  LSTM other = module_from(detaching().seed(2));
  const Tensor draw = gradient(first);
  EXPECT_TRUE(draw.equal(gradient(second)));
  EXPECT_FALSE(draw.equal(gradient(other)));
  EXPECT_FALSE(draw.equal(gradient(first))) << "the second pass repeats the first draw";
  EXPECT_EQ(first->generator_state().seed, 1u);
  EXPECT_EQ(first->generator_state().drawn, 2u * kSteps);
}

TEST(ModuleDraws, StateRestoresThem) {
  LSTM module = module_from(detaching().seed(1));
  gradient(module);
  const auto state = module->generator_state();
  const Tensor draw = gradient(module);
  LSTM resumed = module_from(detaching());
  resumed->set_generator_state(state);
  EXPECT_TRUE(draw.equal(gradient(resumed)));
}

TEST(ModuleDraws, WithoutASeedTorchSeedsThemAtTheFirstDraw) {
  LSTM first = module_from(detaching()), second = module_from(detaching());
  torch::manual_seed(3);
  const Tensor draw = gradient(first);
  EXPECT_FALSE(draw.equal(gradient(second)));
  second = module_from(detaching());
  torch::manual_seed(3);
  EXPECT_TRUE(draw.equal(gradient(second)));
}

TEST(ModuleDraws, TorchsNumbersMoveOnlyForASeed) {
  GradientPolicy damp;
  damp.detach = 0.5;
  damp.mode = Mode::kDamp;
  for (const LSTMOptions& options :
       {detaching(0.0), LSTMOptions(kInput, kHidden).policy(damp), detaching(0.5).seed(1)}) {
    LSTM module = module_from(options);
    torch::manual_seed(3);
    const Tensor next = at::rand({1});
    torch::manual_seed(3);
    gradient(module);
    EXPECT_TRUE(at::rand({1}).equal(next));
  }
}

TEST(ModuleDraws, PolicyIsReadAtEveryPass) {
  LSTM module = module_from(detaching(0.5).seed(1)), plain = module_from(detaching(0.0));
  EXPECT_FALSE(gradient(module).equal(gradient(plain)));
  module->options.policy().detach = 0.0;
  EXPECT_TRUE(gradient(module).equal(gradient(plain)));
  EXPECT_EQ(module->generator_state().drawn, static_cast<uint64_t>(kSteps));
}

TEST(ModuleDraws, DrawScalesIsWhatForwardDraws) {
  LSTM module = module_from(detaching().seed(1)), same = module_from(detaching().seed(1));
  const GradientScales scales = module->draw_scales(kSteps, kBatch);
  module->forward_with_scales(make_input(), {}, scales).output.pow(2).sum().backward();
  EXPECT_TRUE(gradient(same).equal(module->named_parameters()["weight_hh_l0"].grad()));
  module->eval();
  EXPECT_TRUE(module->draw_scales(kSteps, kBatch).h_scale.empty());
}

TEST(ModuleWeights, CloneIsDeepAndContinuesTheDraws) {
  LSTM module = module_from(detaching().seed(1).num_layers(2).bidirectional(true));
  gradient(module);
  LSTM copy(std::dynamic_pointer_cast<LSTMImpl>(module->clone()));
  const auto want = module->named_parameters(), got = copy->named_parameters();
  ASSERT_EQ(got.keys(), want.keys());
  for (const auto& item : want) {
    EXPECT_TRUE(got[item.key()].equal(item.value()));
    EXPECT_FALSE(got[item.key()].is_alias_of(item.value()));
  }
  EXPECT_TRUE(gradient(module).equal(gradient(copy)));
}

TEST(ModuleWeights, MayBeSharedAndReplaced) {
  struct Open : LSTMImpl {
    using LSTMImpl::LSTMImpl;
    void replace(const std::string& name, const Tensor& weight) { parameters_[name] = weight; }
  };
  torch::manual_seed(7);
  LSTMImpl source(kInput, kHidden);
  Open tied{kInput, kHidden};
  const Tensor before = std::get<0>(tied.forward(make_input()));
  for (auto& item : source.named_parameters()) tied.replace(item.key(), item.value());
  EXPECT_FALSE(std::get<0>(tied.forward(make_input())).equal(before));
  std::get<0>(tied.forward(make_input())).sum().backward();
  EXPECT_TRUE(source.named_parameters()["weight_hh_l0"].grad().defined());
  {
    torch::NoGradGuard no_grad;
    source.named_parameters()["bias_ih_l0"].add_(0.5);  // an optimiser's step in place
  }
  EXPECT_TRUE(
      std::get<0>(tied.forward(make_input())).equal(std::get<0>(source.forward(make_input()))));
}

TEST(ModuleWeights, ArchivesAreThoseOfNnLstm) {
  const auto options = torch::nn::LSTMOptions(kInput, kHidden).num_layers(2).bidirectional(true);
  torch::nn::LSTM nn(options), nn_loaded(options);
  LSTM ours(options);
  std::stringstream from_nn, from_ours;
  torch::save(nn, from_nn);
  torch::load(ours, from_nn);
  torch::save(ours, from_ours);
  torch::load(nn_loaded, from_ours);
  const auto want = nn->named_parameters();
  for (const auto& item : want) {
    EXPECT_TRUE(ours->named_parameters()[item.key()].equal(item.value())) << item.key();
    EXPECT_TRUE(nn_loaded->named_parameters()[item.key()].equal(item.value())) << item.key();
  }
}

TEST(ModuleWeights, ForwardWorksThroughAnyModule) {
  LSTM module = module_from(detaching(0.0));
  torch::nn::AnyModule any(module);
  const auto out = any.forward<std::tuple<Tensor, LSTMState>>(make_input());
  EXPECT_TRUE(std::get<0>(out).equal(std::get<0>(module->forward(make_input()))));
}

TEST(ModuleWeights, PrintsItsOptions) {
  std::ostringstream text;
  text << LSTM(detaching(0.25).num_layers(2));
  EXPECT_EQ(text.str(),
            "hdetach::LSTM(input_size=4, hidden_size=5, num_layers=2, bias=true, "
            "batch_first=false, dropout=0, bidirectional=false, detach=0.25)");
}

TEST(ModuleErrors, Options) {
  const auto make = [](const LSTMOptions& options) { return [=] { LSTM module(options); }; };
  const LSTMOptions good(kInput, kHidden);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error(make(LSTMOptions(good).proj_size(3)), "[LSTM] proj_size is 3;");
  expect_error(make(torch::nn::LSTMOptions(kInput, kHidden).proj_size(2)),
               "[LSTM] proj_size is 2;");
  expect_error(make(LSTMOptions(good).dropout(1.5)), "[LSTM] dropout is 1.5;");
  expect_error(make(LSTMOptions(good).dropout(nan)), "[LSTM] dropout is nan;");
  expect_error(make(LSTMOptions(0, kHidden)), "[LSTM] input_size is 0;");
  expect_error(make(LSTMOptions(kInput, -1)), "[LSTM] hidden_size is -1;");
  expect_error(make(LSTMOptions(good).num_layers(0)), "[LSTM] num_layers is 0;");
  expect_error(make(detaching(-0.5)), "[LSTM] policy.detach is -0.5;");
  expect_error(make(detaching(nan)), "[LSTM] policy.detach is nan;");
}

TEST(ModuleErrors, DropoutOfOneLayerWarns) {
  const auto warning_of = [](const LSTMOptions& options) {
    testing::internal::CaptureStderr();  // torch's warnings go there in every version
    LSTM module(options);
    return testing::internal::GetCapturedStderr();
  };
  const LSTMOptions options = LSTMOptions(kInput, kHidden).dropout(0.5);
  EXPECT_EQ(warning_of(LSTMOptions(options).num_layers(2)), "");
  EXPECT_NE(warning_of(options).find("[LSTM] dropout is 0.5 but num_layers is 1"),
            std::string::npos);
}

TEST(ModuleErrors, Input) {
  LSTM module(LSTMOptions(kInput, kHidden).num_layers(2));
  const auto forward = [&](const Tensor& input) { return [=] { LSTM(module)->forward(input); }; };
  expect_error(forward(Tensor()), "[LSTM] input is undefined;");
  expect_error(forward(at::zeros({7})), "[LSTM] input has shape [7];");
  expect_error(forward(at::zeros({2, 3, 4, 4})), "[LSTM] input has shape [2, 3, 4, 4];");
  expect_error(forward(at::zeros({6, 3, 9})), "[LSTM] input has 9 features (shape [6, 3, 9])");
  expect_error(forward(at::zeros({6, 9})), "[LSTM] input has 9 features");
  expect_error(forward(at::zeros({0, 3, kInput})), "[LSTM] input has shape [0, 3, 4];");
  expect_error(forward(at::zeros({6, 0, kInput})), "[LSTM] input has shape [6, 0, 4];");
}

TEST(ModuleErrors, States) {
  LSTM module(LSTMOptions(kInput, kHidden).num_layers(2));
  const Tensor good = at::zeros({2, 3, kHidden}), bad = at::zeros({1, 3, kHidden});
  const Tensor batch = at::zeros({6, 3, kInput}), row = at::zeros({6, kInput});
  const auto forward = [&](const Tensor& input, const Tensor& h_0, const Tensor& c_0) {
    return [=] { LSTM(module)->forward(input, LSTMState{h_0, c_0}); };
  };
  expect_error(forward(batch, bad, good), "[LSTM] h_0 of hx has shape [1, 3, 5];");
  expect_error(forward(batch, good, bad), "[LSTM] c_0 of hx has shape [1, 3, 5];");
  expect_error(forward(batch, good, Tensor()), "[LSTM] c_0 of hx is undefined;");
  expect_error(forward(row, good, good), "it must be [2, 5].");
  expect_error(forward(batch, good.select(1, 0), good.select(1, 0)), "it must be [2, 3, 5].");
}

TEST(ModuleErrors, Scales) {
  LSTM module(LSTMOptions(kInput, kHidden).num_layers(2));
  const auto with = [&](const GradientScales& scales) {
    return [=] { LSTM(module)->forward_with_scales(make_input(), {}, scales); };
  };
  const Tensor good = at::ones({kSteps}), bad = at::ones({7});
  expect_error(with({{good}, {}}), "[LSTM] scales.h_scale has 1 entries but the module has 2");
  expect_error(with({{}, {good, good, good}}), "[LSTM] scales.c_scale has 3 entries");
  expect_error(with({{good, bad}, {}}), "h_scale has 7 entries but x has T=40 steps");
}

TEST(ModuleErrors, PackedInput) {
  LSTM module(LSTMOptions(kInput, kHidden));
  const auto forward = [&](const Tensor& data, std::vector<int64_t> sizes) {
    return
        [=] { LSTM(module)->forward_with_packed_input(PackedSequence(data, at::tensor(sizes))); };
  };
  expect_error(forward(at::zeros({5, 9}), {3, 2}),
               "data of shape [5, 9]; it must be [N,I] with I=4");
  expect_error(forward(at::zeros({5, 2, 4}), {3, 2}), "data of shape [5, 2, 4];");
  expect_error(forward(at::zeros({5, 4}), {2, 3}), "[LSTM] batch_sizes[1] of packed_input is 3;");
  expect_error(forward(at::zeros({5, 4}), {3, 1}),
               "has 5 rows of data but its batch_sizes sum to 4");
}

}  // namespace
}  // namespace hdetach
