#include "cli/bench_check.h"

#include <ATen/ops/zeros_like.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "hdetach/backend.h"
#include "op/error_budget.h"

namespace hdetach::cli {
namespace {

// Long enough for the recurrence to show, short enough for a float64 loop.
constexpr int64_t kMaxSteps = 40;
constexpr int64_t kMaxBatch = 16;  // of the CPU; a GPU is quick enough for all rows

// Peers sum in another order over the full sequence; a different formula would be off by far more.
constexpr double kPeerTolerance = 1e-4;

constexpr const char* kNames[] = {"h",         "c",         "x.grad",    "h0.grad",  "c0.grad",
                                  "w_ih.grad", "w_hh.grad", "b_ih.grad", "b_hh.grad"};

// h, c and the gradients of every input, as float64 in the order of kNames.
std::vector<at::Tensor> answer(LstmFunction function, const Problem& p, at::ScalarType type,
                               const OptionalTensor& h_scale) {
  std::vector<at::Tensor> in;
  for (const at::Tensor& tensor : {p.x, p.h0, p.c0, p.w_ih, p.w_hh, p.b_ih, p.b_hh}) {
    in.push_back(tensor.detach().to(type, /*non_blocking=*/false, /*copy=*/true));
    in.back().requires_grad_();
  }
  const auto [h, c] = function(in[0], in[1], in[2], in[3], in[4], in[5], in[6], h_scale, {}, {});
  const std::vector<at::Tensor> gradients = torch::autograd::grad(
      {h, c}, in, {p.dh.to(type), p.dc.to(type)}, /*retain_graph=*/c10::nullopt,
      /*create_graph=*/false, /*allow_unused=*/true);
  std::vector<at::Tensor> out = {h.detach().to(at::kDouble), c.detach().to(at::kDouble)};
  for (size_t i = 0; i < in.size(); ++i) {
    // Where every step is detached, h0 is no part of the graph.
    out.push_back((gradients[i].defined() ? gradients[i] : at::zeros_like(in[i])).to(at::kDouble));
  }
  return out;
}

double relative_error(const at::Tensor& value, const at::Tensor& truth) {
  const double norm = truth.norm().item<double>();
  const double difference = value.sub(truth).norm().item<double>();
  return norm > 0 ? difference / norm : difference;
}

}  // namespace

void check_kernel(const BenchCase& shape, const std::string& kernel, double detach,
                  at::Device device) {
  BenchCase shortened = shape;
  shortened.steps = std::min(shape.steps, kMaxSteps);
  if (device.is_cpu()) shortened.batch = std::min(shape.batch, kMaxBatch);
  const OptionalTensor scales = detach_scales(detach, shortened.steps, device);
  const int64_t draws = ErrorBudget::draws(shortened.steps, shortened.batch, shortened.hidden);
  std::vector<ErrorBudget> budgets(std::size(kNames));
  const ForcedKernel forced(kernel);
  for (int64_t draw = 0; draw < draws; ++draw) {
    const Problem problem = random_problem(shortened, device, draw);
    const auto truth = answer(&lstm_reference, problem, at::kDouble, scales);
    const auto plain = answer(&lstm_reference, problem, at::kFloat, scales);
    const auto fast = answer(&lstm, problem, at::kFloat, scales);
    if (last_forward().kernel != kernel) {
      throw std::runtime_error(
          fmt::format("asked for kernel {}, but {} ran", kernel, last_forward().kernel));
    }
    for (size_t i = 0; i < truth.size(); ++i) budgets[i].add(fast[i], plain[i], truth[i]);
  }
  for (size_t i = 0; i < budgets.size(); ++i) {
    const ErrorBudget& budget = budgets[i];
    if (budget.met()) continue;
    throw std::runtime_error(fmt::format(
        "kernel {} is wrong on {} at detach {}: the error of {} is {:.3g}, that of the float32 "
        "reference {:.3g}, and {:.3g} is allowed; nothing was timed",
        kernel, shape.name, detach, kNames[i], budget.error(), budget.plain_error(),
        budget.allowed()));
  }
}

void check_peer(const std::string& name, TrainStep& peer, TrainStep& ours) {
  peer.run();
  ours.run();
  const StepResult a = peer.result(), b = ours.result();
  const auto compare = [&](const char* tensor, const at::Tensor& value, const at::Tensor& truth) {
    const double error = relative_error(value, truth);
    if (!(error <= kPeerTolerance)) {
      throw std::runtime_error(
          fmt::format("{} computes another {}: relative difference {:.3g}", name, tensor, error));
    }
  };
  compare("h", a.h, b.h);
  compare("w_ih.grad", a.dw_ih, b.dw_ih);
  compare("w_hh.grad", a.dw_hh, b.dw_hh);
  compare("bias.grad", a.db, b.db);
}

}  // namespace hdetach::cli
