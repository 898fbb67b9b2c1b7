// The rule by which every kernel is judged, in tests and before anything is timed.
//
// For each output and each gradient, over all draws of a problem taken as one tensor,
//
//   |got - truth| <= max(2 |plain - truth|, floor)
//
// where truth is the reference in float64, plain the reference in float32, and |.| the root of the
// sum of squares. The floor is one unit in the last place of float32 of |truth|, or four units of
// its largest value where that is more: of a few numbers plain may have every one right by luck,
// and twice that luck measures nothing. Where truth is zero, so must be what a kernel gives, unless
// plain float32 is off too. At the ends of float32's range kernels may exceed it: docs/kernels.md
// says where.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hdetach {

class ErrorBudget {
 public:
  static constexpr double kUnit = 0x1p-23;  // in the last place of 1
  static constexpr double kLargestUnits = 4;

  // Small problems are drawn again until the two errors are compared over hundreds of numbers.
  static int64_t draws(int64_t steps, int64_t batch, int64_t hidden) {
    return std::clamp<int64_t>(10000 / (steps * batch * hidden), 1, 400);
  }

  void add(const at::Tensor& got, const at::Tensor& plain, const at::Tensor& truth) {
    const at::Tensor exact = truth.cpu().to(at::kDouble);
    const auto off = [&](const at::Tensor& value) {
      return value.cpu().to(at::kDouble).sub(exact).square().sum().item<double>();
    };
    error_ += off(got);
    plain_ += off(plain);
    size_ += exact.square().sum().item<double>();
    const double largest = exact.numel() == 0 ? 0.0 : exact.abs().max().item<double>();
    largest_ = std::max(largest_, largest * largest);
  }

  // Relative to the truth where that is not zero.
  double error() const { return relative(error_); }
  double plain_error() const { return relative(plain_); }
  double allowed() const {
    const double floor =
        kUnit * std::sqrt(std::max(size_, kLargestUnits * kLargestUnits * largest_));
    return std::max(2 * plain_error(), relative(floor * floor));
  }
  bool met() const { return error() <= allowed(); }  // NaN is no number that meets it

 private:
  double relative(double squares) const {
    return std::sqrt(size_ > 0.0 ? squares / size_ : squares);
  }

  double error_ = 0.0, plain_ = 0.0, size_ = 0.0;  // sums of squares
  double largest_ = 0.0;                           // squared
};

}  // namespace hdetach
