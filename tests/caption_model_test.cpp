// The captioners' losses and gradients, against captions one by one and against the same models
// written plainly.
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <map>

#include "tasks/vocabulary.h"
#include "tests/captions.h"

namespace hdetach::test {
namespace {

using tasks::kEnd;
using tasks::kPadding;
using tasks::kStart;

const CaptionerShape kShape{/*words=*/13, /*positions=*/5, /*channels=*/6, /*embedding=*/7,
                            /*hidden=*/9};
constexpr int64_t kSteps = 6, kImages = 3;
const std::vector<int64_t> kLengths{6, 2, 4, 1, 6}, kImageOf{2, 0, 2, 1, 0};
const int64_t kRows = static_cast<int64_t>(kLengths.size());

CaptionTensors make_batch(const at::Device& device) {
  CaptionTensors batch;
  batch.features = features_of(kImages, kShape, device);
  batch.image = codes(kImageOf, device);
  batch.lengths = codes(kLengths, at::kCPU);
  std::vector<int64_t> inputs(kSteps * kRows, kPadding), targets = inputs;
  for (int64_t row = 0; row < kRows; ++row) {
    int64_t word = kStart;
    for (int64_t t = 0; t < kLengths[row]; ++t) {
      inputs[t * kRows + row] = word;
      word = t + 1 == kLengths[row] ? kEnd : 4 + (3 * t + 5 * row) % (kShape.words - 4);
      targets[t * kRows + row] = word;
    }
  }
  batch.inputs = codes(inputs, device).view({kSteps, kRows});
  batch.targets = codes(targets, device).view({kSteps, kRows});
  return batch;
}

Tensor make_mask(const at::Device& device) {  // dropout of one half
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(6);
  return (at::rand({kSteps, kRows, kShape.hidden}, random, at::kFloat).ge(0.5) * 2.0).to(device);
}

Tensor floats(const std::vector<double>& values, const at::Device& device) {
  return at::tensor(values, at::kFloat).to(device);
}

// As many of these as a model has steps: 0 and 1, with a 0 first where h0 has parameters behind it.
Tensor zeros_and_ones(const Captioner& captioner, const at::Device& device) {
  return floats({0, 1, 0, 1, 1, 0, 0}, device).narrow(0, 0, captioner.steps(kSteps));
}

Tensors gradients_of(const Captioner& captioner, const Tensor& loss) {
  Tensors inputs;
  for (const NamedTensor& parameter : captioner.parameters()) inputs.push_back(parameter.tensor);
  return torch::autograd::grad({loss}, inputs);
}

// The models as one would write them first: a caption at a time, a step at a time, in double on the
// CPU, with detach().
class Plain {
 public:
  explicit Plain(const Captioner& captioner) {
    for (const NamedTensor& p : captioner.parameters()) {
      leaves_.push_back(p.tensor.detach().cpu().to(at::kDouble).requires_grad_());
      by_name_[p.name] = leaves_.back();
    }
  }

  // keep[t]: step t's recurrent input is h and not h.detach().
  Tensor loss(const CaptionTensors& batch, const Tensor& keep, const Tensor& mask) {
    const Tensor keeps = keep.cpu(), masks = mask.cpu().to(at::kDouble);
    Tensor sum = at::zeros({}, at::kDouble);
    int64_t count = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      const Tensor image = batch.features.cpu().to(at::kDouble)[kImageOf[row]];
      Tensor h = at::zeros({kShape.hidden}, at::kDouble), c = h;
      const bool attends = by_name_.count("attention.key.weight") > 0;
      if (attends) {
        h = linear("initial_h", image.mean(0)), c = linear("initial_c", image.mean(0));
      } else {
        step(linear("image", image.mean(0)), h, c, keeps[0].item<double>() != 0);
      }
      for (int64_t t = 0; t < kLengths[row]; ++t, ++count) {
        Tensor x = by_name_["embedding.weight"][batch.inputs[t][row].item<int64_t>()];
        if (attends) x = at::cat({x, context(image, h)});
        step(x, h, c, keeps[attends ? t : t + 1].item<double>() != 0);
        const Tensor score = linear("output", h * masks[t][row]);
        sum = sum - at::softmax(score, 0)[batch.targets[t][row].item<int64_t>()].log();
      }
    }
    return sum / static_cast<double>(count);
  }

  Tensors gradients(const Tensor& loss) const { return torch::autograd::grad({loss}, leaves_); }

 private:
  Tensor linear(const std::string& name, const Tensor& x) {
    const Tensor product = by_name_[name + ".weight"].matmul(x);
    return by_name_.count(name + ".bias") > 0 ? product + by_name_[name + ".bias"] : product;
  }

  Tensor context(const Tensor& image, const Tensor& h) {
    Tensors scores;
    for (int64_t p = 0; p < kShape.positions; ++p) {
      const Tensor match = linear("attention.key", image[p]) + linear("attention.query", h);
      scores.push_back(linear("attention.score", match.tanh()));
    }
    return at::softmax(at::cat(scores), 0).matmul(image);
  }

  void step(const Tensor& x, Tensor& h, Tensor& c, bool keep) {
    const Tensor from_h = by_name_["lstm.weight_hh_l0"].matmul(keep ? h : h.detach());
    const auto gates = (by_name_["lstm.weight_ih_l0"].matmul(x) + by_name_["lstm.bias_ih_l0"] +
                        from_h + by_name_["lstm.bias_hh_l0"])
                           .chunk(4);
    c = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    h = gates[3].sigmoid() * c.tanh();
  }

  Tensors leaves_;
  std::map<std::string, Tensor> by_name_;
};

class CaptionModel : public OnEachDevice {
 protected:
  // Runs `body` for both models.
  template <typename Body>
  void for_both(const Body& body) {
    for (const char* kind : kCaptioners) {
      SCOPED_TRACE(kind);
      const auto captioner = born(kind, kShape, GetParam(), 3, /*stretch=*/3);
      body(*captioner, make_batch(GetParam()));
    }
  }
};

TEST_P(CaptionModel, LossIsThatOfTheCaptionsOneByOne) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    const Tensor mask = make_mask(GetParam());
    double sum = 0;
    int64_t count = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t length = kLengths[row];
      const auto own = [&](const Tensor& t) { return t.narrow(0, 0, length).narrow(1, row, 1); };
      const CaptionTensors one{batch.features.narrow(0, kImageOf[row], 1), codes({0}, GetParam()),
                               own(batch.inputs), own(batch.targets), codes({length}, at::kCPU)};
      sum += captioner.loss(one, {}, own(mask)).item<double>() * static_cast<double>(length);
      count += length;
    }
    EXPECT_NEAR(captioner.loss(batch, {}, mask).item<double>(), sum / static_cast<double>(count),
                2e-6);  // some units of the last place of a loss of about 3
  });
}

TEST_P(CaptionModel, GradientsAreThoseOfThePlainModel) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    const Tensor mask = make_mask(GetParam()), some = zeros_and_ones(captioner, GetParam());
    for (const Tensor& scale : {some, 1 - some, at::ones_like(some), at::zeros_like(some)}) {
      Plain plain(captioner);
      const Tensor got = captioner.loss(batch, scale, mask), want = plain.loss(batch, scale, mask);
      EXPECT_NEAR(got.item<double>(), want.item<double>(), 2e-6);
      const Tensors got_grads = gradients_of(captioner, got), want_grads = plain.gradients(want);
      for (size_t i = 0; i < got_grads.size(); ++i) {
        // float32 through up to 7 steps, against double
        expect_close(got_grads[i], want_grads[i], captioner.parameters()[i].name, 5e-6);
      }
    }
  });
}

TEST_P(CaptionModel, AnyScaleDoesWhatItDoesInTheReference) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    const Tensor scale =
        floats({0.3, 0, 1, 0.7, 0.5, 0, 0.2}, GetParam()).narrow(0, 0, captioner.steps(kSteps));
    const Tensors got = gradients_of(captioner, captioner.loss(batch, scale, {}));
    const ForcedKernel forced("reference");
    const Tensors want = gradients_of(captioner, captioner.loss(batch, scale, {}));
    EXPECT_EQ(last_forward().kernel, "reference");
    for (size_t i = 0; i < got.size(); ++i) {
      expect_close(got[i], want[i], captioner.parameters()[i].name, 5e-6);
    }
  });
}

TEST_P(CaptionModel, ScalesLeaveTheLossAlone) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    const Tensor plain = captioner.loss(batch, {}, {});
    const Tensor some = zeros_and_ones(captioner, GetParam());
    for (const Tensor& scale : {some, at::ones_like(some), at::zeros_like(some), some * 0.4}) {
      EXPECT_TRUE(captioner.loss(batch, scale, {}).equal(plain)) << scale;
    }
  });
}

TEST_P(CaptionModel, PaddingCountsForNothing) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    CaptionTensors other = batch;
    const Tensor scale = zeros_and_ones(captioner, GetParam()), mask = make_mask(GetParam());
    other.inputs = batch.inputs.clone();
    other.targets = batch.targets.clone();
    const Tensor other_mask = mask.clone();
    for (int64_t row = 0; row < kRows; ++row) {
      const auto padding = [&](const Tensor& t) {
        return t.narrow(0, kLengths[row], kSteps - kLengths[row]).select(1, row);
      };
      padding(other.inputs).fill_(5);
      padding(other.targets).fill_(7);
      padding(other_mask).fill_(1e30);
    }
    const Tensor want = captioner.loss(batch, scale, mask);
    const Tensor got = captioner.loss(other, scale, other_mask);
    EXPECT_TRUE(got.equal(want));
    const Tensors want_grads = gradients_of(captioner, want),
                  got_grads = gradients_of(captioner, got);
    for (size_t i = 0; i < got_grads.size(); ++i) {
      EXPECT_TRUE(got_grads[i].equal(want_grads[i])) << captioner.parameters()[i].name;
    }
  });
}

TEST_P(CaptionModel, DecodingSaysWhatTheLossSays) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    double sum = 0;
    int64_t count = 0;
    Captioner::State state = captioner.begin(batch.features.index_select(0, batch.image));
    for (int64_t t = 0; t < kSteps; ++t) {
      const Captioner::Step step = captioner.step(state, batch.inputs[t]);
      EXPECT_FALSE(step.log_probability.requires_grad());
      for (int64_t row = 0; row < kRows; ++row) {
        if (t >= kLengths[row]) continue;
        const int64_t target = batch.targets[t][row].item<int64_t>();
        sum -= step.log_probability[row][target].item<double>();
        ++count;
      }
    }
    EXPECT_NEAR(captioner.loss(batch, {}, {}).item<double>(), sum / static_cast<double>(count),
                2e-6);
  });
}

TEST_P(CaptionModel, AttentionAddsUpToOne) {
  for_both([](Captioner& captioner, const CaptionTensors& batch) {
    Captioner::State state = captioner.begin(batch.features);
    const Tensor attention = captioner.step(state, codes({1, 1, 1}, GetParam())).attention;
    ASSERT_EQ(attention.defined(), state.projected.defined());  // by Soft Attention alone
    if (!attention.defined()) return;
    EXPECT_EQ(attention.sizes(), (std::vector<int64_t>{kImages, kShape.positions}));
    EXPECT_LT((attention.sum(1) - 1).abs().max().item<double>(), 1e-6);
    EXPECT_GT((attention - 1.0 / kShape.positions).abs().max().item<double>(), 1e-3);
  });
}

TEST_P(CaptionModel, TheSameSeedGivesTheSameWeightsAnywhere) {
  for (const char* kind : kCaptioners) {
    const auto here = make_captioner(kind, kShape, GetParam());
    const auto cpu = make_captioner(kind, kShape, at::kCPU);
    here->init(8);
    cpu->init(8);
    for (size_t i = 0; i < cpu->parameters().size(); ++i) {
      const auto& [name, got] = here->parameters()[i];
      EXPECT_TRUE(got.cpu().equal(cpu->parameters()[i].tensor)) << name;
      EXPECT_EQ(got.device().type(), GetParam().type());
      EXPECT_TRUE(got.is_leaf() && got.requires_grad() && got.is_contiguous()) << name;
      double bound = 1.0 / 3.0;  // the LSTM, and what reads 9 units
      if (name == "embedding.weight" || name == "output.weight") bound = 0.1;
      if (name == "output.bias") bound = 0;
      if (name.rfind("i", 0) == 0 || name.rfind("attention.key", 0) == 0)
        bound = 1 / std::sqrt(6.0);
      const double largest = got.abs().max().item<double>();
      EXPECT_LE(largest, bound + 1e-7) << name;  // rounded to float32
      EXPECT_GE(largest, bound * 0.5) << name;
    }
    here->init(9);
    EXPECT_FALSE(here->parameters()[0].tensor.cpu().equal(cpu->parameters()[0].tensor));
  }
}

INSTANTIATE_TEST_SUITE_P(Captioners, CaptionModel, testing::ValuesIn(devices()), device_test_name);

TEST(CaptionModelNames, AreThoseOfModules) {
  const auto names = [](const char* kind) {
    std::vector<std::string> list;
    const auto captioner = make_captioner(kind, kShape, at::kCPU);
    for (const NamedTensor& parameter : captioner->parameters()) list.push_back(parameter.name);
    return list;
  };
  std::vector<std::string> want{"embedding.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0",
                                "lstm.bias_ih_l0",  "lstm.bias_hh_l0",   "output.weight",
                                "output.bias",      "image.weight",      "image.bias"};
  EXPECT_EQ(names("show-tell"), want);
  want.resize(7);
  for (const char* name : {"initial_h.weight", "initial_h.bias", "initial_c.weight",
                           "initial_c.bias", "attention.key.weight", "attention.key.bias",
                           "attention.query.weight", "attention.score.weight"}) {
    want.push_back(name);
  }
  EXPECT_EQ(names("soft-attention"), want);
}

TEST(CaptionModelErrors, NameTheArgument) {
  const auto captioner = make_captioner("show-tell", kShape, at::kCPU);
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  EXPECT_EQ(message([] { make_captioner("transformer", kShape, at::kCPU); }),
            "[captioner] kind is \"transformer\"; it must be show-tell or soft-attention.");
  const auto loss_says = [&](const CaptionTensors& batch, const c10::optional<Tensor>& scale) {
    return message([&] { captioner->loss(batch, scale, {}); });
  };
  CaptionTensors batch = make_batch(at::kCPU);
  EXPECT_EQ(loss_says(batch, {}), "");
  EXPECT_EQ(loss_says(batch, at::ones({kSteps})),
            "[captioner] h_scale has shape [6]; it must be [7].");
  batch.lengths = batch.lengths + 1;
  EXPECT_EQ(loss_says(batch, {}),
            "[captioner] lengths go from 2 to 7; they must be in 1..T with T=6.");
  batch.features = batch.features.narrow(2, 0, 5);
  EXPECT_EQ(loss_says(batch, {}).rfind("[captioner] features has shape [3, 5, 5]", 0), 0u);
}

TEST(CudaCaptioner, IsTested) {
  if (!cuda_present()) GTEST_SKIP() << "no CUDA device: the captioners are NOT tested on one here";
}

}  // namespace
}  // namespace hdetach::test
