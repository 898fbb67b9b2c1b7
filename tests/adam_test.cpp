// Measuring gradients and Adam's step: the CPU's against plain torch, the GPU's against the CPU's.
#include "train/adam.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Tensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device.h"
#include "train/tensor_optimiser.h"

namespace hdetach::train {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// One number, less than a warp, less than a block, a whole piece, many pieces and a rest.
const std::vector<int64_t> kSizes = {1, 31, 1000, TensorTable::kPiece, 70001};
constexpr double kClamp = 1.5;  // some of the numbers below are larger

Tensors random_tensors(uint64_t seed, const at::Device& device = at::kCPU) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(seed);
  Tensors out;
  for (const int64_t size : kSizes) out.push_back(at::randn({size}, random, at::kFloat).to(device));
  return out;
}

Tensor loss_of(double value, const at::Device& device = at::kCPU) {
  return at::full({}, value, at::TensorOptions(at::kFloat).device(device));
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

struct Trained {
  Tensors weights, first_moments, second_moments;
  std::vector<Measured> measured;
};

// Steps with and without a clamp, with gradients that are new each time.
Trained train(const at::Device& device) {
  Trained out;
  out.weights = random_tensors(1, device);
  Adam adam(out.weights, 1e-2);
  for (int step = 0; step < 6; ++step) {
    const Tensors gradients = random_tensors(100 + step, device);
    out.measured.push_back(measure(loss_of(0.5 + step, device), gradients, kClamp));
    adam.step(gradients, 0.7, step % 2 == 0 ? kClamp : 0);
  }
  out.first_moments = adam.first_moments();
  out.second_moments = adam.second_moments();
  return out;
}

void expect_close(const Tensors& got, const Tensors& want, double relative, double absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].cpu().allclose(want[i], relative, absolute))
        << i << ": " << (got[i].cpu() - want[i]).abs().max().item<double>();
  }
}

void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << i;
}

// Wherever it stands, a number that is not finite must be seen: an update with it is left out.
void expect_to_see_what_is_not_finite(const at::Device& device) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    for (const auto& [tensor, place] : std::vector<std::pair<size_t, int64_t>>{
             {0, 0}, {1, 30}, {2, 500}, {4, 0}, {4, 40000}, {4, 70000}}) {
      const Tensors gradients = random_tensors(2, device);
      gradients[tensor][place] = value;
      for (const double clamp : {0.0, kClamp}) {
        const Measured measured = measure(loss_of(1, device), gradients, clamp);
        EXPECT_FALSE(std::isfinite(measured.norm)) << value << " at " << tensor << ", " << place;
        EXPECT_EQ(std::isnan(measured.norm), std::isnan(value));
        EXPECT_EQ(std::isnan(measured.largest), std::isnan(value));
        EXPECT_FALSE(std::isfinite(measured.largest)) << value;
        EXPECT_EQ(measured.loss, 1);
      }
    }
  }
  const Measured measured = measure(loss_of(NAN, device), random_tensors(2, device), 0);
  EXPECT_TRUE(std::isnan(measured.loss));
  EXPECT_TRUE(std::isfinite(measured.norm));
}

TEST(Adam, MeasuresWhatPlainTorchDoes) {
  const Tensors gradients = random_tensors(3);
  double squares = 0, clamped = 0, largest = 0;
  for (const Tensor& each : gradients) {
    const Tensor wide = each.to(at::kDouble);
    squares += wide.square().sum().item<double>();
    clamped += wide.clamp(-kClamp, kClamp).square().sum().item<double>();
    largest = std::max(largest, wide.abs().max().item<double>());
  }
  const Measured measured = measure(loss_of(0.25), gradients, kClamp);
  EXPECT_EQ(measured.loss, 0.25);
  EXPECT_EQ(measured.norm, global_norm(gradients));
  EXPECT_EQ(measured.largest, largest);
  // Sums of 8e4 numbers in double.
  EXPECT_NEAR(measured.norm / std::sqrt(squares), 1, 1e-12);
  EXPECT_NEAR(measured.clamped_norm / std::sqrt(clamped), 1, 1e-12);
  EXPECT_LT(measured.clamped_norm, 0.95 * measured.norm);

  for (const double clamp : {0.0, 2 * largest}) {
    const Measured free = measure(loss_of(0.25), gradients, clamp);
    EXPECT_EQ(free.clamped_norm, measured.norm) << clamp;
    EXPECT_EQ(free.largest, largest) << clamp;
  }
}

TEST(Adam, SeesWhatIsNotFinite) { expect_to_see_what_is_not_finite(at::kCPU); }

TEST(Adam, ClampsAndThenScales) {
  const Tensors gradients = random_tensors(4), kept = random_tensors(4);
  Tensors by_hand;
  for (const Tensor& each : gradients) by_hand.push_back(each.clamp(-kClamp, kClamp) * 0.5);
  const Tensors weights = random_tensors(5), other = random_tensors(5);
  Adam(weights, 1e-2).step(gradients, 0.5, kClamp);
  Adam(other, 1e-2).step(by_hand, 1);
  expect_equal(weights, other);
  expect_equal(gradients, kept);  // the caller's stay as they were
}

TEST(Adam, RefusesGradientsThatDoNotFit) {
  const Tensor weight = at::zeros({2, 3});
  Adam adam({weight}, 1e-2);
  EXPECT_EQ(message([&] {
              adam.step({weight, weight}, 1);
            }),
            "[adam] there are 2 gradients for 1 weights.");
  EXPECT_EQ(message([&] { adam.step({at::zeros({5})}, 1); }),
            "[adam] gradient 0 has 5 numbers, its weight 6.");
  EXPECT_EQ(message([&] { adam.step({Tensor()}, 1); }),
            "[adam] gradient 0 has 0 numbers, its weight 6.");
  EXPECT_EQ(message([&] {
              adam.step({at::zeros({3, 2}).t()}, 1);
            }),
            "[adam] a gradient is CPUFloatType, not contiguous; it must be contiguous float32 on "
            "cpu.");
  EXPECT_NE(message([&] { measure(loss_of(1), {at::zeros({2}, at::kDouble)}, 0); }), "");
  EXPECT_NE(message([&] { measure(loss_of(1), {Tensor()}, 0); }), "");
}

TEST(TensorTable, CutsTensorsIntoPieces) {
  TensorTable table;
  for (const int64_t size :
       {int64_t{1}, TensorTable::kPiece, TensorTable::kPiece + 1, int64_t{5}}) {
    table.add(size, nullptr);
  }
  EXPECT_EQ(table.count, 4);
  EXPECT_EQ(table.pieces, 5);
  const std::vector<int64_t> want = {0, 1, 2, 4};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(table.entries[i].first_piece, want[i]) << i;
  EXPECT_LE(sizeof(TensorTable) + 64, 4096u);  // what a launch takes of arguments, others included
}

class CudaAdam : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_present()) GTEST_SKIP() << "no CUDA device: Adam is NOT tested on one here";
  }
};

TEST_F(CudaAdam, MeasuresAndStepsAsOnTheCpu) {
  const Trained got = train(at::kCUDA), want = train(at::kCPU);
  for (size_t i = 0; i < want.measured.size(); ++i) {
    EXPECT_EQ(got.measured[i].loss, want.measured[i].loss) << i;
    EXPECT_EQ(got.measured[i].largest, want.measured[i].largest) << i;
    EXPECT_NEAR(got.measured[i].norm / want.measured[i].norm, 1, 1e-12) << i;
    EXPECT_NEAR(got.measured[i].clamped_norm / want.measured[i].clamped_norm, 1, 1e-12) << i;
  }
  // A few roundings of 6e-8 each step; the absolute part is for numbers that steps have cancelled.
  expect_close(got.weights, want.weights, 1e-6, 1e-7);
  expect_close(got.first_moments, want.first_moments, 1e-6, 3e-7);
  expect_close(got.second_moments, want.second_moments, 1e-6, 0);
}

TEST_F(CudaAdam, TwoRunsHaveTheSameBits) {
  const Trained a = train(at::kCUDA), b = train(at::kCUDA);
  expect_equal(a.weights, b.weights);
  expect_equal(a.first_moments, b.first_moments);
  expect_equal(a.second_moments, b.second_moments);
  for (size_t i = 0; i < a.measured.size(); ++i) {
    EXPECT_EQ(a.measured[i].norm, b.measured[i].norm) << i;
    EXPECT_EQ(a.measured[i].clamped_norm, b.measured[i].clamped_norm) << i;
  }
}

TEST_F(CudaAdam, SeesWhatIsNotFinite) { expect_to_see_what_is_not_finite(at::kCUDA); }

TEST_F(CudaAdam, TheNormDoesNotOverflow) {
  const Tensor gradient = at::full({4}, 1e30, at::TensorOptions(at::kFloat).device(at::kCUDA));
  const Measured measured = measure(loss_of(1, at::kCUDA), {gradient, gradient}, 0);
  EXPECT_NEAR(measured.norm / (1e30 * std::sqrt(8.0)), 1.0, 1e-6);
}

TEST_F(CudaAdam, TakesTensorsThatStartAnywhere) {
  const Tensors whole = random_tensors(6);
  Tensors there;
  for (const Tensor& each : whole) {  // numbers on either side that must not be seen
    const Tensor padded = at::full({each.numel() + 2}, 1e9f).to(at::kCUDA);
    there.push_back(padded.narrow(0, 1, each.numel()));
    there.back().copy_(each);
  }
  const Measured got = measure(loss_of(1, at::kCUDA), there, kClamp);
  const Measured want = measure(loss_of(1), whole, kClamp);
  EXPECT_EQ(got.largest, want.largest);
  EXPECT_NEAR(got.norm / want.norm, 1, 1e-12);
}

TEST_F(CudaAdam, RefusesWhatItCannotTake) {
  const at::TensorOptions there = at::TensorOptions(at::kFloat).device(at::kCUDA);
  const Tensors many(TensorTable::kMost + 1, at::zeros({2}, there));
  const std::string too_many = "[adam] there are 33 tensors; a GPU takes at most 32.";
  EXPECT_EQ(message([&] { measure(loss_of(1, at::kCUDA), many, 0); }), too_many);
  EXPECT_EQ(message([&] { Adam(many, 1e-2).step(many, 1); }), too_many);
  EXPECT_NE(message([&] { measure(loss_of(1, at::kCUDA), {at::zeros({2})}, 0); }), "");
  EXPECT_NE(message([&] {
              measure(loss_of(1, at::kCUDA), {at::zeros({3, 2}, there).t()}, 0);
            }),
            "");
}

}  // namespace
}  // namespace hdetach::train
