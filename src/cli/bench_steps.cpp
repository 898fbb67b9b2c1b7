#include "cli/bench_steps.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lstm_cell.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/rnn.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/bench_onednn.h"
#include "hdetach/gradient_scales.h"

namespace hdetach::cli {
namespace {

constexpr uint64_t kSeed = 20190325;

void drop_gradients(Problem& p) {
  for (at::Tensor* parameter : {&p.w_ih, &p.w_hh, &p.b_ih, &p.b_hh}) {
    parameter->mutable_grad().reset();
  }
}

StepResult result_of(const at::Tensor& h, const Problem& p) {
  return {h.detach(), p.w_ih.grad(), p.w_hh.grad(), p.b_hh.grad()};
}

// An LSTM of ours: the op with one kernel, or the reference.
class OpStep final : public TrainStep {
 public:
  OpStep(LstmFunction function, const Problem& problem, std::string kernel,
         const OptionalTensor& h_scale)
      : function_(function), problem_(problem), kernel_(std::move(kernel)), h_scale_(h_scale) {}

  void prepare() override { drop_gradients(problem_); }
  void forward() override {
    const ForcedKernel forced(kernel_);
    const Problem& p = problem_;
    h_ = std::get<0>(function_(p.x, p.h0, p.c0, p.w_ih, p.w_hh, p.b_ih, p.b_hh, h_scale_, {}, {}));
  }
  void backward() override { h_.backward(problem_.dh); }
  StepResult result() const override { return result_of(h_, problem_); }

 private:
  LstmFunction function_;
  Problem problem_;
  std::string kernel_;
  OptionalTensor h_scale_;
  at::Tensor h_;
};

class LibTorchStep final : public TrainStep {
 public:
  explicit LibTorchStep(const Problem& problem)
      : problem_(problem),
        state_(problem.h0.unsqueeze(0), problem.c0.unsqueeze(0)),
        module_(problem.shape.input, problem.shape.hidden) {
    const c10::AutoGradMode no_grad(false);
    module_->to(problem.x.device());
    parameter("weight_ih_l0").copy_(problem.w_ih);
    parameter("weight_hh_l0").copy_(problem.w_hh);
    parameter("bias_ih_l0").copy_(problem.b_ih);
    parameter("bias_hh_l0").copy_(problem.b_hh);
    module_->flatten_parameters();  // one piece of memory, or cuDNN copies the weights every time
  }

  void prepare() override {
    for (at::Tensor& parameter : module_->parameters()) parameter.mutable_grad().reset();
  }
  void forward() override { h_ = std::get<0>(module_->forward(problem_.x, state_)); }
  void backward() override { h_.backward(problem_.dh); }

  StepResult result() const override {
    return {h_.detach(), parameter("weight_ih_l0").grad(), parameter("weight_hh_l0").grad(),
            parameter("bias_hh_l0").grad()};
  }

 private:
  at::Tensor parameter(const char* name) const { return module_->named_parameters()[name]; }

  Problem problem_;
  std::tuple<at::Tensor, at::Tensor> state_;  // [1,B,H]
  torch::nn::LSTM module_;
  at::Tensor h_;
};

class CellLoopStep final : public TrainStep {
 public:
  CellLoopStep(const Problem& problem, const OptionalTensor& h_scale) : problem_(problem) {
    const at::Tensor scale = h_scale ? h_scale->cpu() : at::ones({problem.shape.steps});
    for (int64_t t = 0; t < problem.shape.steps; ++t) {
      blocked_.push_back(scale[t].item<float>() == 0);
    }
  }

  void prepare() override { drop_gradients(problem_); }
  void forward() override {
    const Problem& p = problem_;
    at::Tensor h = p.h0, c = p.c0;
    std::vector<at::Tensor> all_h;
    for (size_t t = 0; t < blocked_.size(); ++t) {
      std::tie(h, c) =
          at::lstm_cell(p.x[t], {blocked_[t] ? h.detach() : h, c}, p.w_ih, p.w_hh, p.b_ih, p.b_hh);
      all_h.push_back(h);
    }
    h_ = at::stack(all_h);
  }
  void backward() override { h_.backward(problem_.dh); }
  StepResult result() const override { return result_of(h_, problem_); }

 private:
  Problem problem_;
  std::vector<bool> blocked_;
  at::Tensor h_;
};

class OneDnnStep final : public TrainStep {
 public:
  OneDnnStep(const Problem& problem, int threads)
      : problem_(problem),
        result_{at::empty(problem.dh.sizes()), at::empty(problem.w_ih.sizes()),
                at::empty(problem.w_hh.sizes()), at::empty(problem.b_hh.sizes())} {
    const auto data = [](const at::Tensor& tensor) { return tensor.data_ptr<float>(); };
    lstm_ = make_onednn_lstm(
        problem.shape,
        {data(problem.x), data(problem.h0), data(problem.c0), data(problem.w_ih),
         data(problem.w_hh), data(problem.b_ih), data(problem.b_hh), data(problem.dh),
         data(result_.h), data(result_.dw_ih), data(result_.dw_hh), data(result_.db)},
        threads);
  }

  bool found() const { return lstm_ != nullptr; }
  void forward() override { lstm_->forward(); }
  void backward() override { lstm_->backward(); }
  StepResult result() const override { return result_; }

 private:
  Problem problem_;  // owns what lstm_ points into
  StepResult result_;
  std::unique_ptr<OneDnnLstm> lstm_;
};

}  // namespace

StepTime TrainStep::run() {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  prepare();
  const auto start = Clock::now();
  forward();
  const auto middle = Clock::now();
  backward();
  const auto end = Clock::now();
  return {Milliseconds(middle - start).count(), Milliseconds(end - middle).count()};
}

Problem random_problem(const BenchCase& shape, at::Device device, uint64_t draw) {
  const int64_t T = shape.steps, B = shape.batch, I = shape.input, H = shape.hidden;
  auto generator = at::detail::createCPUGenerator(kSeed + draw);
  // Drawn on the CPU, so that every device computes with the same numbers.
  const auto normal = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator).to(device); };
  const auto parameter = [&](at::IntArrayRef sizes) {
    // nn::LSTM's default scale, so that gates neither vanish nor saturate.
    return normal(sizes).mul_(1 / std::sqrt(3.0 * H)).requires_grad_();
  };
  Problem p;
  p.shape = shape;
  p.x = normal({T, B, I});
  p.h0 = normal({B, H}).tanh_();
  p.c0 = normal({B, H});
  p.w_ih = parameter({4 * H, I});
  p.w_hh = parameter({4 * H, H});
  p.b_ih = parameter({4 * H});
  p.b_hh = parameter({4 * H});
  p.dh = normal({T, B, H});
  p.dc = normal({T, B, H});
  return p;
}

OptionalTensor detach_scales(double detach, int64_t steps, at::Device device) {
  GradientPolicy policy;
  policy.detach = detach;
  ScaleGenerator generator(kSeed);
  const at::Tensor scales = sample(policy, steps, /*batch=*/1, /*layers=*/1, generator).h_scale[0];
  return scales.defined() ? OptionalTensor(scales.to(device)) : OptionalTensor();
}

ForcedKernel::ForcedKernel(const std::string& kernel) {
  if (const char* value = std::getenv("HDETACH_KERNEL")) before_ = value;
  setenv("HDETACH_KERNEL", kernel.c_str(), 1);
}

// An empty value means the same as none.
ForcedKernel::~ForcedKernel() { setenv("HDETACH_KERNEL", before_.c_str(), 1); }

std::unique_ptr<TrainStep> kernel_step(const Problem& problem, const std::string& kernel,
                                       const OptionalTensor& h_scale) {
  return std::make_unique<OpStep>(&lstm, problem, kernel, h_scale);
}

std::unique_ptr<TrainStep> reference_step(const Problem& problem, const OptionalTensor& h_scale) {
  return std::make_unique<OpStep>(&lstm_reference, problem, "reference", h_scale);
}

std::unique_ptr<TrainStep> libtorch_step(const Problem& problem) {
  return std::make_unique<LibTorchStep>(problem);
}

std::unique_ptr<TrainStep> cell_loop_step(const Problem& problem, const OptionalTensor& h_scale) {
  return std::make_unique<CellLoopStep>(problem, h_scale);
}

std::unique_ptr<TrainStep> onednn_step(const Problem& problem, int threads) {
  auto step = std::make_unique<OneDnnStep>(problem, threads);
  return step->found() ? std::move(step) : nullptr;
}

}  // namespace hdetach::cli
