// The training steps that the bench times against each other, all on the same numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "cli/bench_case.h"
#include "hdetach/lstm.h"

namespace hdetach::cli {

// Random inputs of a case, the same for every run. Weights and biases need a gradient, x and the
// initial states do not, as when training on data.
struct Problem {
  BenchCase shape;
  at::Tensor x;           // [T,B,I]
  at::Tensor h0, c0;      // [B,H]
  at::Tensor w_ih, w_hh;  // [4H,I], [4H,H]
  at::Tensor b_ih, b_hh;  // [4H]
  at::Tensor dh, dc;      // [T,B,H] gradients that arrive from above
};
Problem random_problem(const BenchCase& shape, at::Device device, uint64_t draw = 0);

// One fixed draw of [T] scales; absent at detach 0.
OptionalTensor detach_scales(double detach, int64_t steps, at::Device device);

using LstmFunction = decltype(&lstm);  // hdetach::lstm_reference has the same type

// Makes HDETACH_KERNEL name `kernel` for its lifetime.
class ForcedKernel {
 public:
  explicit ForcedKernel(const std::string& kernel);
  ~ForcedKernel();
  ForcedKernel(const ForcedKernel&) = delete;
  ForcedKernel& operator=(const ForcedKernel&) = delete;

 private:
  std::string before_;
};

struct StepTime {
  double forward_ms, backward_ms;
};

struct StepResult {
  at::Tensor h, dw_ih, dw_hh, db;
};

// Forward and backward pass of one training step, with dh as the loss gradient. On CUDA tensors
// both queue their work and do not wait for it.
class TrainStep {
 public:
  virtual ~TrainStep() = default;
  virtual void prepare() {}  // before each forward, not timed: drops the old gradients
  virtual void forward() = 0;
  virtual void backward() = 0;
  virtual StepResult result() const = 0;  // of the latest step

  StepTime run();  // all three, by the host's clock
};

std::unique_ptr<TrainStep> kernel_step(const Problem& problem, const std::string& kernel,
                                       const OptionalTensor& h_scale);
std::unique_ptr<TrainStep> reference_step(const Problem& problem, const OptionalTensor& h_scale);
std::unique_ptr<TrainStep> libtorch_step(const Problem& problem);  // cuDNN on CUDA
// The paper's way: a loop of LibTorch's own LSTM cell, with detach() at the blocked steps.
std::unique_ptr<TrainStep> cell_loop_step(const Problem& problem, const OptionalTensor& h_scale);
// Null when the program was built without oneDNN.
std::unique_ptr<TrainStep> onednn_step(const Problem& problem, int threads);

}  // namespace hdetach::cli
