// The kernels of the GPU against cuDNN and the paper's loop.
//
// The steps of a repeat are queued one after the other on torch's stream while the stream is held,
// then let go and waited for: the device is measured, not the host, whose own time for a step is
// told beside it. Events on the stream tell when the device came to the start of a step, to the end
// of its forward pass and to its end; a figure is the median over the steps of all repeats. Every
// repeat runs each contestant in turn. All compute in plain float32: TF32 is off.
#include <ATen/Context.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_check.h"
#include "cli/bench_report.h"
#include "cli/bench_steps.h"
#include "cli/output.h"
#include "hdetach/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/kernel.h"
#include "op/cuda_stream.h"
#include "report/median.h"

namespace hdetach::cli {
namespace {

// A repeat is about this long, but no more steps than the queue of a stream holds.
constexpr double kRepeatMilliseconds = 50;
constexpr int kLeastSteps = 3, kMostSteps = 50;
constexpr int kUntimedSteps = 2;  // at the start of a repeat

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct StepTimers {
  CudaTimer forward, whole;
};
using TimerPool = std::vector<StepTimers>;

// A training step in the race, with its times so far.
struct CudaContestant {
  std::unique_ptr<TrainStep> step;
  int repeats = 0;
  int steps_per_repeat = 1;
  std::vector<double> forward_ms = {}, backward_ms = {}, train_ms = {}, host_ms = {};

  void warm_up() {
    for (int i = 0; i < kUntimedSteps; ++i) step->run();
    cuda_synchronize();
    const auto start = Clock::now();
    step->run();
    cuda_synchronize();
    const double steps = std::ceil(kRepeatMilliseconds / milliseconds_since(start));
    steps_per_repeat = static_cast<int>(std::clamp<double>(steps, kLeastSteps, kMostSteps));
  }

  void run_repeat(TimerPool& timers) {
    void* const stream = current_stream();
    CudaHold hold(stream);
    for (int i = 0; i < kUntimedSteps; ++i) step->run();
    for (int i = 0; i < steps_per_repeat; ++i) {
      const auto start = Clock::now();
      step->prepare();
      timers[i].whole.start(stream);
      timers[i].forward.start(stream);
      step->forward();
      timers[i].forward.stop(stream);
      step->backward();
      timers[i].whole.stop(stream);
      host_ms.push_back(milliseconds_since(start));
    }
    hold.release();
    cuda_synchronize();
    for (int i = 0; i < steps_per_repeat; ++i) {
      const double forward = timers[i].forward.milliseconds();
      train_ms.push_back(timers[i].whole.milliseconds());
      forward_ms.push_back(forward);
      backward_ms.push_back(train_ms.back() - forward);
    }
  }
};

void race(const std::vector<CudaContestant*>& contestants, const std::string& name, int repeats) {
  TimerPool timers(kMostSteps);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    show_progress(fmt::format("{}: repeat {} of {}", name, repeat + 1, repeats));
    for (CudaContestant* contestant : contestants) {
      if (repeat < contestant->repeats) contestant->run_repeat(timers);
    }
  }
}

std::vector<CudaRow> time_cuda_case(const BenchCase& shape, const std::vector<std::string>& kernels,
                                    const BenchOptions& options) {
  show_progress(shape.name + ": warming up");
  const Problem problem = random_problem(shape, at::kCUDA);
  const size_t draws = options.detach.size();
  std::vector<OptionalTensor> scales;
  for (double detach : options.detach) {
    scales.push_back(detach_scales(detach, shape.steps, at::kCUDA));
  }

  std::vector<CudaContestant> ours;  // kernel-major
  for (const std::string& kernel : kernels) {
    for (const OptionalTensor& scale : scales) {
      ours.push_back({kernel_step(problem, kernel, scale), options.repeats});
    }
  }
  CudaContestant cudnn;
  std::vector<CudaContestant> cell_loop;
  if (!options.no_peers) {
    const auto plain = kernel_step(problem, kernels[0], {});
    cudnn = {libtorch_step(problem), options.repeats};
    check_peer("cuDNN's LSTM", *cudnn.step, *plain);
    for (size_t draw = 0; draw < draws; ++draw) {
      // Slow and steady: two repeats tell enough.
      cell_loop.push_back({cell_loop_step(problem, scales[draw]), std::min(options.repeats, 2)});
      check_peer(fmt::format("the cell loop at detach {}", options.detach[draw]),
                 *cell_loop.back().step, *ours[draw].step);
    }
  }
  std::vector<CudaContestant*> contestants;
  for (CudaContestant& contestant : ours) contestants.push_back(&contestant);
  if (cudnn.step) contestants.push_back(&cudnn);
  for (CudaContestant& contestant : cell_loop) contestants.push_back(&contestant);
  for (CudaContestant* contestant : contestants) contestant->warm_up();
  race(contestants, shape.name, options.repeats);

  std::vector<CudaRow> rows;
  for (size_t i = 0; i < ours.size(); ++i) {
    const size_t draw = i % draws;
    CudaRow row{shape, kernels[i / draws], options.detach[draw], cuda_device_name()};
    row.forward_ms = report::median(ours[i].forward_ms);
    row.backward_ms = report::median(ours[i].backward_ms);
    row.train_ms = report::median(ours[i].train_ms);
    row.host_ms = report::median(ours[i].host_ms);
    if (cudnn.step) row.cudnn_train_ms = report::median(cudnn.train_ms);
    if (!cell_loop.empty()) row.cell_loop_train_ms = report::median(cell_loop[draw].train_ms);
    rows.push_back(row);
  }
  return rows;
}

// The kernels to time on a shape. Those named that do not take it are left out, with a note.
std::vector<std::string> kernels_for(const BenchCase& c, const BenchOptions& options) {
  if (options.kernels.empty()) return {cuda_kernel_for(c.steps, c.batch, c.input, c.hidden)};
  std::vector<std::string> suited;
  for (const std::string& name : options.kernels) {
    const Kernel* kernel = find_kernel(name.c_str());  // null: the reference
    const char* reason = kernel ? kernel->unsuited({c.steps, c.batch, c.input, c.hidden}) : nullptr;
    if (reason == nullptr) {
      suited.push_back(name);
    } else {
      print(stderr, "{} does not take {}: {}\n", name, c.name, reason);
    }
  }
  return suited;
}

}  // namespace

void run_cuda_bench(const BenchOptions& options, const std::vector<BenchCase>& cases) {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  std::vector<std::vector<std::string>> kernels;  // of each case
  for (const BenchCase& shape : cases) {
    kernels.push_back(kernels_for(shape, options));
    for (const std::string& kernel : kernels.back()) {
      for (double detach : options.detach) {
        show_progress(fmt::format("checking {} {} at detach {}", shape.name, kernel, detach));
        check_kernel(shape, kernel, detach, at::kCUDA);
      }
    }
  }
  bool head = !options.json;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (kernels[i].empty()) continue;
    const std::vector<CudaRow> rows = time_cuda_case(cases[i], kernels[i], options);
    show_progress("");
    if (std::exchange(head, false)) {
      print("{}, milliseconds, medians\n{}", rows[0].gpu, cuda_table_head());
    }
    for (const CudaRow& row : rows) {
      print("{}", options.json ? json_line(row) + "\n" : table_line(row));
    }
    flush_output();
  }
}

}  // namespace hdetach::cli
