// hdetach bench: checks the kernels, then times them against their peers in one process.
//
// Every repeat runs each contestant in turn, so that a machine that slows down slows all of them;
// a figure is the median over the repeats. A training step counts
//   2 * B * 4H * (T * (I + H)  +  T * (I + H)  +  kept * H)  FLOPs:
// the forward pass, the weights' gradients, and the recurrent products of the steps that were not
// detached (without step 0, since h0 needs no gradient). x needs no gradient.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cli/bench_check.h"
#include "cli/bench_peak.h"
#include "cli/bench_report.h"
#include "cli/bench_steps.h"
#include "cli/bench_trainer.h"
#include "cli/live_line.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "hdetach/backend.h"
#include "report/median.h"

namespace hdetach::cli {
namespace {

const std::vector<BenchCase> kCases = {
    {"copy100", 120, 100, 10, 128}, {"copy300", 320, 100, 10, 128}, {"mnist", 784, 100, 1, 100},
    {"caption", 20, 128, 512, 512}, {"wide", 64, 32, 256, 1024},
};

struct BenchOptions {
  std::vector<std::string> cases;  // names out of kCases; empty means all
  std::string shape;               // "T,B,I,H", instead of cases
  std::vector<double> detach = {0, 0.25, 0.5, 1};
  std::vector<std::string> kernels;  // empty means the active one
  int threads = usable_cores();
  int repeats = 7;
  bool no_peers = false;
  bool trainer = false;
  bool json = false;
};

// Progress, silent when stderr goes elsewhere.
void show_progress(const std::string& text) {
  static LiveLine line(stderr, LiveLine::Elsewhere::kSilent);
  text.empty() ? line.clear() : line.show(text);
}

bool parse_shape(const std::string& text, BenchCase* shape) {
  int64_t* const fields[] = {&shape->steps, &shape->batch, &shape->input, &shape->hidden};
  const char *at = text.data(), *const end = at + text.size();
  for (int i = 0; i < 4; ++i) {
    const auto [next, error] = std::from_chars(at, end, *fields[i]);
    const bool closed = i < 3 ? next != end && *next == ',' : next == end;
    if (error != std::errc() || *fields[i] < 1 || !closed) return false;
    at = next + 1;
  }
  shape->name = "custom";
  return true;
}

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
  const Problem problem = random_problem(shape);
  const size_t draws = options.detach.size();
  std::vector<OptionalTensor> scales;
  for (double detach : options.detach) scales.push_back(detach_scales(detach, shape.steps));

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

std::vector<BenchCase> chosen_cases(const BenchOptions& options) {
  if (!options.shape.empty()) {
    BenchCase shape;
    parse_shape(options.shape, &shape);
    return {shape};
  }
  if (options.cases.empty()) return kCases;
  std::vector<BenchCase> chosen;
  for (const std::string& name : options.cases) {
    chosen.push_back(*std::find_if(kCases.begin(), kCases.end(),
                                   [&](const BenchCase& shape) { return shape.name == name; }));
  }
  return chosen;
}

std::vector<std::string> chosen_kernels(const BenchOptions& options) {
  if (options.kernels.empty()) return {active_kernel()};
  for (const KernelInfo& kernel : kernels()) {
    const auto& names = options.kernels;
    if (!kernel.available && std::find(names.begin(), names.end(), kernel.name) != names.end()) {
      throw std::runtime_error(
          fmt::format("--kernel {}: this machine cannot run it: {}", kernel.name, kernel.reason));
    }
  }
  return options.kernels;
}

void run_bench(const BenchOptions& options) {
  const std::vector<BenchCase> cases = chosen_cases(options);
  const std::vector<std::string> kernels = chosen_kernels(options);
  set_threads({options.threads, options.threads});
  for (const BenchCase& shape : cases) {
    for (const std::string& kernel : kernels) {
      for (double detach : options.detach) {
        show_progress(fmt::format("checking {} {} at detach {}", shape.name, kernel, detach));
        check_kernel(shape, kernel, detach);
      }
    }
  }
  bool head = !options.json;
  for (const BenchCase& shape : cases) {
    const std::vector<BenchRow> rows = time_case(shape, kernels, options);
    show_progress("");
    if (std::exchange(head, false)) {
      fmt::print("{} thread{}, milliseconds, medians\n{}", options.threads,
                 options.threads == 1 ? "" : "s", table_head());
    }
    for (const BenchRow& row : rows) {
      fmt::print("{}", options.json ? json_line(row) + "\n" : table_line(row));
    }
    std::fflush(stdout);
  }
}

void run_trainer_bench(const BenchOptions& options) {
  std::vector<BenchCase> cases;
  for (const BenchCase& shape : chosen_cases(options)) {
    const bool task = shape.input == 1 || shape.input == 10;
    if (task) cases.push_back(shape);
    if (!task && !options.cases.empty()) {
      throw CLI::ValidationError(fmt::format(
          "--trainer: {} is no task of the trainer; name copy100, copy300 or mnist", shape.name));
    }
  }
  set_threads({options.threads, options.threads});
  if (!options.json) {
    fmt::print("{} thread{}, milliseconds, medians\n{}", options.threads,
               options.threads == 1 ? "" : "s", trainer_table_head());
  }
  for (const BenchCase& shape : cases) {
    for (const double detach : options.detach) {
      show_progress(fmt::format("{} at detach {}", shape.name, detach));
      const TrainerRow row = time_trainer(shape, detach, options.threads, options.repeats);
      show_progress("");
      fmt::print("{}", options.json ? trainer_json(row) + "\n" : trainer_table_line(row));
      std::fflush(stdout);
    }
  }
}

}  // namespace

void register_bench(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench", "Check the kernels, then time them against LibTorch, oneDNN and the reference");
  auto options = std::make_shared<BenchOptions>();

  std::vector<std::string> case_names, kernel_names;
  for (const BenchCase& shape : kCases) case_names.push_back(shape.name);
  for (const KernelInfo& kernel : kernels()) kernel_names.push_back(kernel.name);

  std::string case_help = "Sizes to run (default: all), as steps, batch, inputs, hidden:";
  for (const BenchCase& c : kCases) {
    case_help += fmt::format(" {} {},{},{},{};", c.name, c.steps, c.batch, c.input, c.hidden);
  }
  case_help.pop_back();
  CLI::Option* cases =
      command->add_option("CASES", options->cases, case_help)->check(CLI::IsMember(case_names));
  CLI::Option* shape =
      command->add_option("--shape", options->shape, "Other sizes, instead of CASES")
          ->type_name("T,B,I,H")
          ->excludes(cases)
          ->check([](const std::string& text) {
            BenchCase shape;
            return parse_shape(text, &shape) ? std::string()
                                             : text + " is not four positive whole numbers T,B,I,H";
          });
  command->add_option("--detach", options->detach, "Probabilities that a step is detached")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->default_str("0,0.25,0.5,1")
      ->type_name("P[,P]");
  CLI::Option* kernel =
      command->add_option("--kernel", options->kernels, "Kernels to time (default: the active one)")
          ->delimiter(',')
          ->check(CLI::IsMember(kernel_names))
          ->type_name("NAME[,NAME]");
  command->add_option("--threads", options->threads, "Threads, for the peers too")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--repeats", options->repeats, "Repeats a median is taken of")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  CLI::Option* no_peers =
      command->add_flag("--no-peers", options->no_peers, "Time the kernels alone");
  command
      ->add_flag("--trainer", options->trainer,
                 "Time the trainer's whole update against the bare op instead (copy100, copy300, "
                 "mnist)")
      ->excludes(shape)
      ->excludes(kernel)
      ->excludes(no_peers);
  command->add_flag("--json", options->json, "Print one JSON object per line");
  command->footer(
      "The answer is checked first: outputs and every gradient may be off from a float64 "
      "reference\n"
      "by at most twice what the float32 reference is; otherwise nothing is timed (exit 1).\n"
      "A training step is forward + backward with gradients for weights and biases, not for x.\n"
      "libtorch (torch::nn::LSTM) and onednn (its LSTM primitives) cannot detach: one figure\n"
      "serves every row. reference is the paper's loop with detach(), the median of at most two\n"
      "repeats. All run in this process with the same threads; LibTorch's operations get them in\n"
      "OpenMP and BLAS, or in BLAS alone where that is quicker.\n"
      "peak: the step's 2*B*4H*(2*T*(I+H) + kept*H) FLOPs, kept = steps after the first that are\n"
      "not detached, per second of train, over the multiply-add rate measured here in float32.");
  command->callback(
      [options] { options->trainer ? run_trainer_bench(*options) : run_bench(*options); });
}

}  // namespace hdetach::cli
