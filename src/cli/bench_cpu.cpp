// The kernels of the CPU against LibTorch, oneDNN and the reference.
//
// Every repeat runs each contestant in turn, so that a machine that slows down slows all of them;
// a figure is the median over the repeats. A training step counts
//   2 * B * 4H * (T * (I + H)  +  T * (I + H)  +  kept * H)  FLOPs:
// the forward pass, the weights' gradients, and the recurrent products of the steps that were not
// detached (without step 0, since h0 needs no gradient). x needs no gradient.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_check.h"
#include "cli/bench_peak.h"
#include "cli/bench_report.h"
#include "cli/bench_steps.h"
#include "cli/bench_trainer.h"
#include "cli/output.h"
#include "hdetach/backend.h"
#include "report/median.h"

namespace hdetach::cli {
namespace {

// A training step in the race, with its times so far.
struct Contestant {
  std::unique_ptr<TrainStep> step;
  int repeats = 0;
  Threads threads = {1, 1};
  int steps_per_repeat = 1;
  std::vector<double> forward_ms = {}, backward_ms = {}, train_ms = {};

  // A repeat of a quick step is several steps long, to be measurable. The first step is not timed:
  // a training loop runs hot.
  void run_repeat() {
    set_threads(threads);
    step->run();
    for (int i = 0; i < steps_per_repeat; ++i) {
      const StepTime time = step->run();
      forward_ms.push_back(time.forward_ms);
      backward_ms.push_back(time.backward_ms);
      train_ms.push_back(time.forward_ms + time.backward_ms);
    }
  }

  // Returns the milliseconds of the warm step.
  double warm_up() {
    set_threads(threads);
    step->run();
    const StepTime time = step->run();
    const double ms = time.forward_ms + time.backward_ms;
    steps_per_repeat = static_cast<int>(std::clamp(std::ceil(20 / ms), 1.0, 100.0));
    return ms;
  }

  // Two pools that spin on the same cores can be slower than one, so a step of LibTorch operations
  // gets its BLAS pool alone where that is quicker.
  void warm_up_quickest_pools() {
    const Threads both = threads, blas_alone = {1, threads.blas};
    const double both_ms = warm_up();
    threads = blas_alone;
    if (warm_up() > both_ms) threads = both;
  }
};

// Runs the contestants in turn. Returns the FMA peak, measured between the repeats.
double race(const std::vector<Contestant*>& contestants, const std::string& name, int repeats,
            int threads) {
  double peak_gflops = fma_peak_gflops(threads, 5);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    show_progress(fmt::format("{}: repeat {} of {}", name, repeat + 1, repeats));
    for (Contestant* contestant : contestants) {
      if (repeat >= contestant->repeats) continue;
      // Idle OpenMP and BLAS workers spin for a while, which would slow the next contestant.
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      contestant->run_repeat();
    }
    peak_gflops = std::max(peak_gflops, fma_peak_gflops(threads, 1));
  }
  return peak_gflops;
}

double train_flops(const BenchCase& shape, const OptionalTensor& h_scale) {
  const double T = shape.steps, B = shape.batch, I = shape.input, H = shape.hidden;
  const double kept =
      h_scale ? h_scale->slice(0, 1).count_nonzero().item<double>() : T - 1;  // step 0 sends none
  return 2 * B * 4 * H * (2 * T * (I + H) + kept * H);
}

std::vector<BenchRow> time_case(const BenchCase& shape, const std::vector<std::string>& kernels,
                                const BenchOptions& options) {
  show_progress(shape.name + ": warming up");
  const Problem problem = random_problem(shape, at::kCPU);
  const size_t draws = options.detach.size();
  std::vector<OptionalTensor> scales;
  for (double detach : options.detach) {
    scales.push_back(detach_scales(detach, shape.steps, at::kCPU));
  }

  const Threads threads = {options.threads, options.threads};
  std::vector<Contestant> ours;  // kernel-major
  for (const std::string& kernel : kernels) {
    for (const OptionalTensor& scale : scales) {
      ours.push_back({kernel_step(problem, kernel, scale), options.repeats, threads});
      ours.back().warm_up();
    }
  }
  Contestant libtorch, onednn;
  std::vector<Contestant> reference;
  if (!options.no_peers) {
    const auto plain = kernel_step(problem, kernels[0], {});
    libtorch = {libtorch_step(problem), options.repeats, threads};
    check_peer("LibTorch's nn::LSTM", *libtorch.step, *plain);
    libtorch.warm_up_quickest_pools();
    set_threads(threads);
    onednn = {onednn_step(problem, options.threads), options.repeats, threads};
    if (onednn.step) {
      check_peer("oneDNN's LSTM", *onednn.step, *plain);
      onednn.warm_up();
    }
    for (const OptionalTensor& scale : scales) {
      // Slow and steady: two repeats tell enough.
      reference.push_back(
          {reference_step(problem, scale), std::min(options.repeats, 2), libtorch.threads});
    }
  }
  std::vector<Contestant*> contestants;
  for (Contestant& contestant : ours) contestants.push_back(&contestant);
  if (libtorch.step) contestants.push_back(&libtorch);
  if (onednn.step) contestants.push_back(&onednn);
  for (Contestant& contestant : reference) contestants.push_back(&contestant);
  const double peak_gflops = race(contestants, shape.name, options.repeats, options.threads);

  std::vector<BenchRow> rows;
  for (size_t i = 0; i < ours.size(); ++i) {
    const size_t draw = i % draws;
    BenchRow row{shape, kernels[i / draws], options.detach[draw], options.threads};
    row.forward_ms = report::median(ours[i].forward_ms);
    row.backward_ms = report::median(ours[i].backward_ms);
    row.train_ms = report::median(ours[i].train_ms);
    if (libtorch.step) row.libtorch_train_ms = report::median(libtorch.train_ms);
    if (onednn.step) row.onednn_train_ms = report::median(onednn.train_ms);
    if (!reference.empty()) row.reference_train_ms = report::median(reference[draw].train_ms);
    row.peak_gflops = peak_gflops;
    row.peak_fraction =
        train_flops(shape, scales[draw]) / (row.train_ms * 1e-3) / (peak_gflops * 1e9);
    rows.push_back(row);
  }
  return rows;
}

std::string threads_head(int threads) {
  return fmt::format("{} thread{}, milliseconds, medians\n", threads, threads == 1 ? "" : "s");
}

}  // namespace

void run_cpu_bench(const BenchOptions& options, const std::vector<BenchCase>& cases) {
  const std::vector<std::string> kernels =
      options.kernels.empty() ? std::vector<std::string>{active_kernel()} : options.kernels;
  set_threads({options.threads, options.threads});
  for (const BenchCase& shape : cases) {
    for (const std::string& kernel : kernels) {
      for (double detach : options.detach) {
        show_progress(fmt::format("checking {} {} at detach {}", shape.name, kernel, detach));
        check_kernel(shape, kernel, detach, at::kCPU);
      }
    }
  }
  bool head = !options.json;
  for (const BenchCase& shape : cases) {
    const std::vector<BenchRow> rows = time_case(shape, kernels, options);
    show_progress("");
    if (std::exchange(head, false)) {
      print("{}{}", threads_head(options.threads), table_head());
    }
    for (const BenchRow& row : rows) {
      print("{}", options.json ? json_line(row) + "\n" : table_line(row));
    }
    flush_output();
  }
}

void run_cpu_trainer_bench(const BenchOptions& options, const std::vector<BenchCase>& cases) {
  set_threads({options.threads, options.threads});
  if (!options.json) print("{}{}", threads_head(options.threads), trainer_table_head());
  for (const BenchCase& shape : cases) {
    for (const double detach : options.detach) {
      show_progress(fmt::format("{} at detach {}", shape.name, detach));
      const TrainerRow row = time_trainer(shape, detach, options.threads, options.repeats);
      show_progress("");
      print("{}", options.json ? trainer_json(row) + "\n" : trainer_table_line(row));
      flush_output();
    }
  }
}

}  // namespace hdetach::cli
