// The operators that Python and TorchScript call, beside hdetach::lstm: against the C++ module and
// nn::LSTM, which they must agree with, and on tensors without numbers.
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

#include <string>

#include "hdetach/backend.h"
#include "hdetach/lstm.h"
#include "hdetach/modules.h"
#include "module_run.h"
#include "op/ops.h"
#include "op_calls.h"

namespace hdetach {
namespace {

using namespace module_run;
using Tensors = std::vector<Tensor>;

struct Call {
  Tensor input;
  OptionalTensor h0, c0;
  Tensors weights;
  bool has_biases = true;
  int64_t num_layers = 1;
  bool bidirectional = false;
  Tensors h_scale, c_scale;
  OptionalTensor batch_sizes, sorted_indices;
  double dropout = 0.0;

  std::tuple<Tensor, Tensor, Tensor, Tensors> operator()() const {
    static const auto op = find<decltype(lstm_stack)>("hdetach::lstm_stack");
    return op.call(input, h0, c0, weights, has_biases, num_layers, dropout, /*train=*/true,
                   bidirectional, h_scale, c_scale, batch_sizes, sorted_indices,
                   /*return_cells=*/true);
  }
};

template <typename Module>
Call call_of(Module& module, const Tensor& input, const LSTMState& hx) {
  Call call;
  call.input = input;
  std::tie(call.h0, call.c0) = hx;
  call.weights = module->parameters();
  call.has_biases = module->options.bias();
  call.num_layers = module->options.num_layers();
  call.bidirectional = module->options.bidirectional();
  return call;
}

torch::nn::LSTMOptions options_of(int64_t layers, int bits) {
  return torch::nn::LSTMOptions(kInput, kHidden)
      .num_layers(layers)
      .bias((bits & 1) == 0)
      .bidirectional((bits & 2) != 0);
}

LSTMState states_of(const torch::nn::LSTMOptions& options) {
  const int64_t count = options.num_layers() * (options.bidirectional() ? 2 : 1);
  return {leaf({count, kBatch, kHidden}, 0.31), leaf({count, kBatch, kHidden}, 0.47)};
}

void expect_bits_of(const Result& got, const Result& want, const std::string& what) {
  EXPECT_TRUE(got.output.equal(want.output)) << what;
  EXPECT_TRUE(got.h_n.equal(want.h_n) && got.c_n.equal(want.c_n)) << what;
  ASSERT_EQ(got.grads.size(), want.grads.size()) << what;
  EXPECT_TRUE(same_gradients(got, want)) << what;
}

TEST(ModuleOp, IsTheModuleAndTorchsLstm) {
  for (const int64_t layers : {1, 2}) {
    for (int bits = 0; bits < 4; ++bits) {
      const std::string what = "layers " + std::to_string(layers) + " bits " + std::to_string(bits);
      torch::manual_seed(7);
      torch::nn::LSTM nn(options_of(layers, bits));
      torch::manual_seed(7);
      LSTM ours(options_of(layers, bits));
      const Tensor input = leaf({kSteps, kBatch, kInput}, 0.9);
      const LSTMState hx = states_of(nn->options);
      const Result got = differentiate(ours, input, hx, [&] {
        const auto [output, h_n, c_n, cells] = call_of(ours, input, hx)();
        EXPECT_EQ(cells.size(), static_cast<size_t>(layers));
        EXPECT_EQ(cells.back().sizes(), output.sizes());
        return std::make_tuple(output, LSTMState(h_n, c_n));
      });
      expect_bits_of(got, run(ours, input, hx), what);
      expect_same(got, run(nn, input, hx), what);
    }
  }
}

TEST(ModuleOp, TakesPackedSequences) {
  const Tensor lengths = at::tensor({2, 6, 3}, at::kLong);
  for (int bits = 0; bits < 4; ++bits) {
    torch::manual_seed(7);
    torch::nn::LSTM nn(options_of(2, bits));
    torch::manual_seed(7);
    LSTM ours(options_of(2, bits));
    const Tensor input = leaf({kSteps, kBatch, kInput}, 0.9);
    const LSTMState hx = states_of(nn->options);
    const auto packed = pack_padded_sequence(input, lengths, false, /*enforce_sorted=*/false);
    const auto through = [&](auto& module) {
      return differentiate(module, input, hx, [&] {
        const auto again = pack_padded_sequence(input, lengths, false, false);
        const auto [output, state] = module->forward_with_packed_input(again, hx);
        return std::make_tuple(output.data(), state);
      });
    };
    const Result got = differentiate(ours, input, hx, [&] {
      Call call = call_of(ours, packed.data(), hx);
      call.batch_sizes = packed.batch_sizes();
      call.sorted_indices = packed.sorted_indices();
      const auto [output, h_n, c_n, cells] = call();
      EXPECT_EQ(cells[1].sizes(), output.sizes());
      return std::make_tuple(output, LSTMState(h_n, c_n));
    });
    expect_bits_of(got, through(ours), "ours " + std::to_string(bits));
    expect_same(got, through(nn), "nn " + std::to_string(bits));
  }
}

// The draws of sample_scales, given to the op, are those of the module: also where rows are sorted.
TEST(ModuleOp, DrawsWhatTheModuleDraws) {
  static const auto draw = find<std::tuple<Tensors, Tensors, int64_t>(
      int64_t, int64_t, int64_t, double, c10::string_view, c10::string_view, c10::string_view, bool,
      int64_t, int64_t)>("hdetach::sample_scales");
  const Tensor lengths = at::tensor({2, 6, 3}, at::kLong);
  const Tensor input = leaf({kSteps, kBatch, kInput}, 0.9);
  for (const Path path : {Path::kHidden, Path::kCell}) {
    GradientPolicy policy;
    policy.detach = 0.5;
    policy.path = path;
    policy.layers = LayerDraw::kSeparate;
    policy.per_sample = true;
    LSTM module(LSTMOptions(options_of(2, 2)).policy(policy).seed(11));
    const auto [h_scale, c_scale, drawn] =
        draw.call(kSteps, kBatch, 4, 0.5, path == Path::kCell ? "cell" : "hidden", "detach",
                  "separate", true, 11, 0);
    EXPECT_EQ(drawn, 4 * kSteps * kBatch);
    const auto packed = pack_padded_sequence(input, lengths, false, false);
    const Result got = differentiate(module, input, {}, [&] {
      Call call = call_of(module, packed.data(), {});
      call.h0 = call.c0 = OptionalTensor();
      call.h_scale = h_scale;
      call.c_scale = c_scale;
      call.batch_sizes = packed.batch_sizes();
      call.sorted_indices = packed.sorted_indices();
      const auto [output, h_n, c_n, cells] = call();
      return std::make_tuple(output, LSTMState(h_n, c_n));
    });
    const Result want = differentiate(module, input, {}, [&] {
      const auto again = pack_padded_sequence(input, lengths, false, false);
      const auto [output, state] = module->forward_with_packed_input(again);
      return std::make_tuple(output.data(), state);
    });
    expect_bits_of(got, want, path == Path::kCell ? "cell" : "hidden");
    EXPECT_EQ(module->generator_state().drawn, static_cast<uint64_t>(drawn));
  }
}

TEST(ModuleOp, SampleScalesIsSample) {
  static const auto draw = find<std::tuple<Tensors, Tensors, int64_t>(
      int64_t, int64_t, int64_t, double, c10::string_view, c10::string_view, c10::string_view, bool,
      int64_t, int64_t)>("hdetach::sample_scales");
  for (int bits = 0; bits < 32; ++bits) {
    const bool cell = bits & 1, damp = bits & 2, separate = bits & 4, rows = bits & 8;
    const double detach = bits & 16 ? 0.4 : 0.0;
    const GradientPolicy policy{detach, cell ? Path::kCell : Path::kHidden,
                                damp ? Mode::kDamp : Mode::kDetach,
                                separate ? LayerDraw::kSeparate : LayerDraw::kJoint, rows};
    ScaleGenerator generator(ScaleGenerator::State{5, 3});
    const GradientScales want = sample(policy, 7, 2, 3, generator);
    const auto [h_scale, c_scale, drawn] =
        draw.call(7, 2, 3, detach, cell ? "cell" : "hidden", damp ? "damp" : "detach",
                  separate ? "separate" : "joint", rows, 5, 3);
    EXPECT_EQ(static_cast<uint64_t>(drawn), generator.state().drawn) << bits;
    const Tensors &got = cell ? c_scale : h_scale, &other = cell ? h_scale : c_scale;
    EXPECT_TRUE(other.empty()) << bits;
    ASSERT_EQ(got.size(), detach == 0.0 ? 0u : 3u) << bits;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(got[i].equal((cell ? want.c_scale : want.h_scale)[i])) << bits;
    }
  }
  EXPECT_EQ(refusal_of([] { draw.call(1, 1, 1, 0.5, "both", "detach", "joint", false, 0, 0); }),
            "[sample_scales] path is 'both'; it must be 'hidden' or 'cell'.");
}

TEST(ModuleOp, NamesWhatIsWrong) {
  LSTM module(options_of(2, 0));
  const Tensor input = leaf({kSteps, kBatch, kInput}, 0.9);
  const Call good = call_of(module, input, states_of(options_of(2, 0)));
  const auto says = [&](const std::string& text, const auto& spoil) {
    Call call = good;
    spoil(call);
    const std::string error = refusal_of(call);
    EXPECT_EQ(error.rfind(text, 0), 0u) << error;
  };
  says("[lstm_stack] weights has 7 entries but 2 layers, with biases, have 8.",
       [](Call& c) { c.weights.pop_back(); });
  says("[lstm_stack] weights[4] is Double but input is Float;",
       [](Call& c) { c.weights[4] = c.weights[4].to(at::kDouble); });
  says("[lstm_stack] h0 has shape [2, 3, 4]; for this input and these weights it must be [2, 3, 5]",
       [](Call& c) {
         c.h0 = at::zeros({2, 3, 4});
       });
  says("[lstm_stack] c0 is on meta but input is on cpu;", [](Call& c) {
    c.c0 = at::empty({2, 3, 5}, at::device(at::kMeta));
  });
  says("[lstm_stack] c0 is missing;", [](Call& c) { c.c0 = OptionalTensor(); });
  says("[lstm_stack] input has shape [6, 4]; it must be [T,B,I].", [](Call& c) {
    c.input = at::zeros({kSteps, kInput});
  });
  says("[lstm_stack] input has shape [6, 3, 4]; it must be [N,I], as batch_sizes are given.",
       [](Call& c) { c.batch_sizes = at::ones({kSteps}, at::kLong); });
  says("[lstm_stack] h_scale has 1 entries but there are 2 layers and directions;",
       [](Call& c) { c.h_scale = {at::ones({kSteps})}; });
  says("[lstm_stack] dropout is 1.5;", [](Call& c) { c.dropout = 1.5; });
  says("[lstm] c_scale has 5 entries but x has T=6 steps.", [](Call& c) {
    c.c_scale = {at::ones({kSteps}), at::ones({5})};
  });
}

TEST(ModuleOp, NamesWhatIsWrongWithAPackedSequence) {
  LSTM module(options_of(1, 0));
  Call good = call_of(module, wave({6, kInput}, 0.9, at::kFloat), {});
  good.h0 = good.c0 = OptionalTensor();
  good.batch_sizes = at::tensor({3, 2, 1}, at::kLong);
  good.sorted_indices = at::tensor({1, 2, 0}, at::kLong);
  good();
  const auto says = [&](const std::string& text, const auto& spoil) {
    Call call = good;
    spoil(call);
    EXPECT_EQ(refusal_of(call), "[LSTM] " + text);
  };
  says("batch_sizes[1] of packed_input is 4; they must be positive and never grow.", [](Call& c) {
    c.batch_sizes = at::tensor({1, 4, 1}, at::kLong);
  });
  says("packed_input has 6 rows of data but its batch_sizes sum to 5.", [](Call& c) {
    c.batch_sizes = at::tensor({3, 1, 1}, at::kLong);
  });
  says("packed_input has no steps; a sequence needs at least one.",
       [](Call& c) { c.batch_sizes = at::empty({0}, at::kLong); });
  says("sorted_indices[2] of packed_input is 3; they must be 0..B-1 in some order, with B=3.",
       [](Call& c) {
         c.sorted_indices = at::tensor({1, 2, 3}, at::kLong);
       });
  says("sorted_indices[1] of packed_input is 2; they must be 0..B-1 in some order, with B=3.",
       [](Call& c) {
         c.sorted_indices = at::tensor({2, 2, 0}, at::kLong);
       });
  says("sorted_indices of packed_input is Long of shape [2]; it must be int64 [B] with B=3.",
       [](Call& c) {
         c.sorted_indices = at::tensor({1, 0}, at::kLong);
       });
  says(
      "batch_sizes of packed_input must be numbers on the CPU, to be read now, and its data must "
      "be "
      "there; torch.compile and the meta device cannot take a packed sequence.",
      [](Call& c) { c.input = c.input.to(at::kMeta); });
  says("packed_input is Half; it must be float32 or float64.",
       [](Call& c) { c.input = c.input.to(at::kHalf); });
}

// One direction in float32: flip, and where for the reference, have no meta in LibTorch 1.13.
TEST(ModuleOp, MetaTensorsGiveShapes) {
  LSTM module(options_of(2, 0));
  const auto bare = [](const Tensor& t) {
    return at::empty(t.sizes(), t.options().device(at::kMeta)).requires_grad_();
  };
  const auto [h0, c0] = states_of(options_of(2, 0));
  Call call = call_of(module, bare(leaf({kSteps, kBatch, kInput}, 0.9)), {bare(h0), bare(c0)});
  for (Tensor& t : call.weights) t = bare(t);
  const Tensor scale = at::empty({kSteps}, at::device(at::kMeta));
  call.h_scale = {scale, scale};
  const auto [output, h_n, c_n, cells] = call();
  EXPECT_TRUE(output.is_meta());
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{kSteps, kBatch, kHidden}));
  EXPECT_EQ(h_n.sizes(), h0.sizes());
  EXPECT_EQ(c_n.sizes(), c0.sizes());
  Tensors inputs = call.weights;
  inputs.push_back(call.input);
  const Tensors grads = torch::autograd::grad({output.sum() + cells[0].sum()}, inputs);
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_EQ(grads[i].sizes(), inputs[i].sizes());
}

// What torch.autocast("cpu") does to this thread.
class Autocast {
 public:
  Autocast() { set(false); }
  ~Autocast() { set(true); }

 private:
  static void set(bool excluded) {
    c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, excluded);
  }
};

TEST(ModuleOp, AutocastComputesInFullPrecision) {
  LSTM module(options_of(1, 0));
  const Tensors w = module->parameters();
  const Tensor x = wave({kSteps, kBatch, kInput}, 0.9, at::kBFloat16);
  const Tensor h0 = wave({kBatch, kHidden}, 0.4, at::kFloat);
  const auto want = lstm(x.to(at::kFloat), h0, h0, w[0], w[1], w[2], w[3]);
  const auto exact = lstm(x.to(at::kDouble), h0.to(at::kDouble), h0.to(at::kDouble),
                          w[0].to(at::kDouble), w[1].to(at::kDouble));
  Call call = call_of(module, x, {h0.unsqueeze(0), h0.unsqueeze(0)});
  EXPECT_EQ(refusal_of(call),
            "[lstm_stack] weights[0] is Float but input is BFloat16; convert one of "
            "them with .to().");
  const Autocast autocast;
  EXPECT_EQ(at::linear(h0, w[1]).scalar_type(), at::kBFloat16) << "autocast is off";
  EXPECT_TRUE(std::get<0>(lstm(x, h0, h0, w[0], w[1], w[2], w[3])).equal(std::get<0>(want)));
  EXPECT_TRUE(std::get<0>(call()).equal(std::get<0>(want)));
  EXPECT_TRUE(
      std::get<0>(lstm_cell(x[0], h0, h0, w[0], w[1], w[2], w[3])).equal(std::get<0>(want)[0]));
  // The reference is made of operations that autocast would change.
  EXPECT_TRUE(std::get<0>(lstm(x.to(at::kDouble), h0.to(at::kDouble), h0.to(at::kDouble),
                               w[0].to(at::kDouble), w[1].to(at::kDouble)))
                  .equal(std::get<0>(exact)));
}

}  // namespace
}  // namespace hdetach
