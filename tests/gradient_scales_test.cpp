// The policies and the stream of random numbers behind them.
#include "hdetach/gradient_scales.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hdetach {
namespace {

GradientPolicy detach_policy(double detach) {
  GradientPolicy policy;
  policy.detach = detach;
  return policy;
}

std::vector<float> values(const at::Tensor& scale) {
  const at::Tensor flat = scale.contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

double mean_of(const at::Tensor& scale) {
  double sum = 0;
  for (float value : values(scale)) sum += value;
  return sum / static_cast<double>(scale.numel());
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

// Worked out apart from this code (Python integers); a checkpoint must mean the same draws for
// ever.
TEST(ScaleGenerator, StreamIsPinned) {
  struct Golden {
    uint64_t seed;
    double first, second, third;
  };
  for (const Golden& golden :
       {Golden{0, 0x1.4e0dba5e9a32fp-1, 0x1.6705460be8829p-1, 0x1.8c6a4553eeafcp-2},
        Golden{42, 0x1.5f87eae99441cp-2, 0x1.e957a287fd648p-1, 0x1.f2059ce304a40p-2},
        Golden{UINT64_MAX, 0x1.77082a9eca89cp-2, 0x1.7b4acd1403ae0p-1, 0x1.056864ed57700p-1}}) {
    ScaleGenerator generator(golden.seed);
    EXPECT_EQ(generator.uniform(), golden.first);
    EXPECT_EQ(generator.uniform(), golden.second);
    EXPECT_EQ(generator.uniform(), golden.third);
    EXPECT_EQ(generator.state().seed, golden.seed);
    EXPECT_EQ(generator.state().drawn, 3u);
  }
}

TEST(ScaleGenerator, UniformFillsTheUnitInterval) {
  const int n = 200000;
  ScaleGenerator generator(1);
  double sum = 0, product = 0, previous = 0.5;
  std::vector<int> bins(16);
  for (int i = 0; i < n; ++i) {
    const double u = generator.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    product += (u - 0.5) * (previous - 0.5);
    previous = u;
    ++bins[static_cast<int>(u * 16)];
  }
  // Five standard deviations of each statistic under independent uniform draws.
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(product / n, 0.0, 5 / 12.0 / std::sqrt(n));
  for (int count : bins) EXPECT_NEAR(count, n / 16.0, 5 * std::sqrt(n / 16.0 * 15 / 16));
}

TEST(ScaleGenerator, StateRestoresTheStream) {
  ScaleGenerator generator(9);
  for (int i = 0; i < 5; ++i) generator.uniform();
  const ScaleGenerator::State state = generator.state();
  const double next = generator.uniform();
  EXPECT_EQ(ScaleGenerator(state).uniform(), next);
  ScaleGenerator other(123);
  EXPECT_NE(other.uniform(), next);
  other.set_state(state);
  EXPECT_EQ(other.uniform(), next);
}

// A plain Weyl counter would give seeds this far apart the same numbers, shifted by one.
TEST(ScaleGenerator, SeedsAWeylStepApartShareNothing) {
  ScaleGenerator first(5), second(5 + 0x9E3779B97F4A7C15);
  first.uniform();
  for (int i = 0; i < 8; ++i) EXPECT_NE(first.uniform(), second.uniform());
}

TEST(Sample, ScaleIsZeroWhereTheDrawIsBelowDetach) {
  ScaleGenerator generator(3), same(3);
  const auto scales = sample(detach_policy(0.4), 50, 7, 1, generator);
  ASSERT_EQ(scales.h_scale.size(), 1u);
  EXPECT_EQ(scales.h_scale[0].sizes(), at::IntArrayRef({50}));
  EXPECT_EQ(scales.h_scale[0].scalar_type(), at::kFloat);
  for (float value : values(scales.h_scale[0])) {
    EXPECT_EQ(value, same.uniform() < 0.4 ? 0.0f : 1.0f);
  }
  EXPECT_EQ(generator.state().drawn, 50u);
}

TEST(Sample, ZeroDrawsNothing) {
  for (Mode mode : {Mode::kDetach, Mode::kDamp}) {
    ScaleGenerator generator(3);
    GradientPolicy policy;
    policy.mode = mode;
    const auto scales = sample(policy, 10, 2, 3, generator);
    ASSERT_EQ(scales.h_scale.size(), 3u);
    ASSERT_EQ(scales.c_scale.size(), 3u);
    for (int layer = 0; layer < 3; ++layer) {
      EXPECT_FALSE(scales.h_scale[layer].defined());
      EXPECT_FALSE(scales.c_scale[layer].defined());
    }
    EXPECT_EQ(generator.state().drawn, 0u);
  }
}

TEST(Sample, OneBlocksEveryStep) {
  ScaleGenerator generator(3);
  const auto scales = sample(detach_policy(1.0), 100000, 1, 1, generator);
  EXPECT_EQ(mean_of(scales.h_scale[0]), 0.0);
}

TEST(Sample, KeptFractionIsOneMinusDetach) {
  const int64_t steps = 100000;
  for (double detach : {0.1, 0.25, 0.5, 0.9}) {
    ScaleGenerator generator(17);
    const auto scales = sample(detach_policy(detach), steps, 1, 1, generator);
    // Five standard deviations of a mean of Bernoulli draws.
    EXPECT_NEAR(mean_of(scales.h_scale[0]), 1 - detach,
                5 * std::sqrt(detach * (1 - detach) / steps));
  }
}

TEST(Sample, JointLayersShareOneDraw) {
  ScaleGenerator generator(4);
  const auto scales = sample(detach_policy(0.5), 64, 2, 3, generator);
  EXPECT_TRUE(scales.h_scale[1].is_same(scales.h_scale[0]));
  EXPECT_TRUE(scales.h_scale[2].is_same(scales.h_scale[0]));
  EXPECT_EQ(generator.state().drawn, 64u);
}

TEST(Sample, SeparateLayersDrawInTurn) {
  GradientPolicy policy = detach_policy(0.5);
  policy.layers = LayerDraw::kSeparate;
  ScaleGenerator generator(4), again(4);
  const auto scales = sample(policy, 64, 2, 2, generator);
  EXPECT_EQ(generator.state().drawn, 128u);
  EXPECT_NE(values(scales.h_scale[0]), values(scales.h_scale[1]));
  // The first layer's draw is the joint one, so one layer is the same in both settings.
  const auto joint = sample(detach_policy(0.5), 64, 2, 1, again);
  EXPECT_EQ(values(scales.h_scale[0]), values(joint.h_scale[0]));
}

TEST(Sample, PerSampleDrawsForEveryRow) {
  GradientPolicy policy = detach_policy(0.5);
  policy.per_sample = true;
  ScaleGenerator generator(4), same(4);
  const auto scales = sample(policy, 64, 3, 2, generator);
  EXPECT_EQ(scales.h_scale[0].sizes(), at::IntArrayRef({64, 3}));
  EXPECT_EQ(generator.state().drawn, 64u * 3u);
  EXPECT_NE(values(scales.h_scale[0].select(1, 0)), values(scales.h_scale[0].select(1, 1)));
  for (float value : values(scales.h_scale[0])) EXPECT_EQ(value, same.uniform() < 0.5 ? 0 : 1);
}

TEST(Sample, DampIsConstantAndDrawsNothing) {
  for (bool per_sample : {false, true}) {
    GradientPolicy policy = detach_policy(0.25);
    policy.mode = Mode::kDamp;
    policy.per_sample = per_sample;
    policy.layers = LayerDraw::kSeparate;
    ScaleGenerator generator(4);
    const auto scales = sample(policy, 5, 3, 2, generator);
    for (const at::Tensor& scale : scales.h_scale) {
      EXPECT_EQ(values(scale), std::vector<float>(5, 0.75f));
      EXPECT_EQ(scale.dim(), 1);
    }
    EXPECT_EQ(generator.state().drawn, 0u);
  }
}

TEST(Sample, CellPathSteersTheCellAlone) {
  GradientPolicy policy = detach_policy(0.5);
  policy.path = Path::kCell;
  ScaleGenerator generator(4), same(4);
  const auto scales = sample(policy, 32, 1, 2, generator);
  const auto hidden = sample(detach_policy(0.5), 32, 1, 2, same);
  for (int layer = 0; layer < 2; ++layer) {
    EXPECT_FALSE(scales.h_scale[layer].defined());
    EXPECT_FALSE(hidden.c_scale[layer].defined());
    EXPECT_EQ(values(scales.c_scale[layer]), values(hidden.h_scale[layer]));
  }
}

TEST(Sample, NothingToSteerIsNoError) {
  ScaleGenerator generator(4);
  EXPECT_EQ(sample(detach_policy(0.5), 0, 2, 1, generator).h_scale[0].numel(), 0);
  EXPECT_TRUE(sample(detach_policy(0.5), 3, 2, 0, generator).h_scale.empty());
}

TEST(Sample, RefusesBadArguments) {
  ScaleGenerator generator(4);
  const auto with = [&](double detach, int64_t steps, int64_t batch, int64_t layers) {
    return [=, &generator] { sample(detach_policy(detach), steps, batch, layers, generator); };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error(with(1.5, 1, 1, 1), "[sample] detach is 1.5; it must be in [0,1].");
  expect_error(with(-0.25, 1, 1, 1), "[sample] detach is -0.25;");
  expect_error(with(nan, 1, 1, 1), "[sample] detach is nan;");
  expect_error(with(0.5, -2, 1, 1), "[sample] steps is -2;");
  expect_error(with(0.5, 1, -3, 1), "[sample] batch is -3;");
  expect_error(with(0.5, 1, 1, -4), "[sample] layers is -4;");
  EXPECT_EQ(generator.state().drawn, 0u);
}

}  // namespace
}  // namespace hdetach
