// hdetach bench: checks the kernels, then times them against their peers in one process.
#include "cli/bench.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <stdexcept>

#include "cli/live_line.h"
#include "cli/number_range.h"
#include "cli/subcommands.h"
#include "hdetach/backend.h"
#include "kernels/cuda/device.h"

namespace hdetach::cli {
namespace {

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

std::vector<BenchCase> chosen_cases(const BenchOptions& options) {
  if (!options.shape.empty()) {
    BenchCase shape;
    parse_shape(options.shape, &shape);
    return {shape};
  }
  if (options.cases.empty()) return default_cases(options.cuda());
  const std::vector<BenchCase>& all = bench_cases();
  std::vector<BenchCase> chosen;
  for (const std::string& name : options.cases) {
    chosen.push_back(*std::find_if(all.begin(), all.end(),
                                   [&](const BenchCase& shape) { return shape.name == name; }));
  }
  return chosen;
}

// Those of the chosen cases that the trainer has a task for.
std::vector<BenchCase> trainer_cases(const BenchOptions& options) {
  std::vector<BenchCase> cases;
  for (const BenchCase& shape : chosen_cases(options)) {
    if (shape.name == "copy100" || shape.name == "copy300" || shape.name == "mnist") {
      cases.push_back(shape);
    } else if (!options.cases.empty()) {
      throw CLI::ValidationError(fmt::format(
          "--trainer: {} is no task of the trainer; name copy100, copy300 or mnist", shape.name));
    }
  }
  return cases;
}

void check_device(const BenchOptions& options) {
  if (!options.cuda()) {
    if (options.replicas != 1) {
      throw CLI::ValidationError(fmt::format(
          "--replicas {}: the trainer of the CPU runs one; add --device cuda", options.replicas));
    }
    return;
  }
  if (cuda_present()) return;
  const auto list = kernels();
  const bool built = std::any_of(list.begin(), list.end(),
                                 [](const KernelInfo& kernel) { return kernel.device == "cuda"; });
  throw CLI::ValidationError(
      built ? "--device cuda: this machine has no CUDA device; hdetach info tells what it has"
            : "--device cuda: this program was built without CUDA; build it with nvcc and a "
              "LibTorch that has CUDA");
}

void check_kernels(const BenchOptions& options) {
  for (const KernelInfo& kernel : kernels()) {
    const auto& names = options.kernels;
    if (std::find(names.begin(), names.end(), kernel.name) == names.end()) continue;
    if (!kernel.available) {
      throw std::runtime_error(
          fmt::format("--kernel {}: this machine cannot run it: {}", kernel.name, kernel.reason));
    }
    if (kernel.name != "reference" && kernel.device != options.device) {
      throw CLI::ValidationError(fmt::format("--kernel {}: it takes {} tensors, but --device is {}",
                                             kernel.name, kernel.device, options.device));
    }
  }
}

void run_bench(const BenchOptions& options) {
  check_kernels(options);
  check_device(options);
  if (options.trainer) {
    const std::vector<BenchCase> cases = trainer_cases(options);
    options.cuda() ? run_cuda_trainer_bench(options, cases) : run_cpu_trainer_bench(options, cases);
  } else {
    const std::vector<BenchCase> cases = chosen_cases(options);
    options.cuda() ? run_cuda_bench(options, cases) : run_cpu_bench(options, cases);
  }
}

std::string case_help() {
  std::string text =
      "Sizes to run (default: those down to wide, with --device cuda all), as steps, batch, "
      "inputs, hidden:";
  for (const BenchCase& c : bench_cases()) {
    text += fmt::format(" {} {},{},{},{};", c.name, c.steps, c.batch, c.input, c.hidden);
  }
  text.pop_back();
  return text;
}

}  // namespace

void show_progress(const std::string& text) {
  static LiveLine line(stderr, LiveLine::Elsewhere::kSilent);
  text.empty() ? line.clear() : line.show(text);
}

void register_bench(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench",
      "Check the kernels, then time them against LibTorch, oneDNN, cuDNN and the paper's "
      "loop");
  auto options = std::make_shared<BenchOptions>();

  std::vector<std::string> case_names, kernel_names;
  for (const BenchCase& shape : bench_cases()) case_names.push_back(shape.name);
  for (const KernelInfo& kernel : kernels()) kernel_names.push_back(kernel.name);

  CLI::Option* cases =
      command->add_option("CASES", options->cases, case_help())->check(CLI::IsMember(case_names));
  CLI::Option* shape =
      command->add_option("--shape", options->shape, "Other sizes, instead of CASES")
          ->type_name("T,B,I,H")
          ->excludes(cases)
          ->check([](const std::string& text) {
            BenchCase shape;
            return parse_shape(text, &shape) ? std::string()
                                             : text + " is not four positive whole numbers T,B,I,H";
          });
  command->add_option("--device", options->device, "Where to run: cpu or cuda")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--detach", options->detach, "Probabilities that a step is detached")
      ->delimiter(',')
      ->check(number_in(0.0, 1.0))
      ->default_str("0,0.25,0.5,1")
      ->type_name("P[,P]");
  CLI::Option* kernel =
      command
          ->add_option("--kernel", options->kernels,
                       "Kernels to time (default: the active one; on cuda the one for the sizes)")
          ->delimiter(',')
          ->check(CLI::IsMember(kernel_names))
          ->type_name("NAME[,NAME]");
  add_threads(*command, options->threads, "Threads of the CPU, for the peers too")
      ->default_str(std::to_string(options->threads));
  command->add_option("--repeats", options->repeats, "Repeats a median is taken of")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  CLI::Option* no_peers =
      command->add_flag("--no-peers", options->no_peers, "Time the kernels alone");
  CLI::Option* trainer =
      command
          ->add_flag("--trainer", options->trainer,
                     "Time the trainer's whole updates instead (copy100, copy300, mnist): on the "
                     "CPU against the bare op, on cuda also an epoch with its validation")
          ->excludes(shape)
          ->excludes(kernel)
          ->excludes(no_peers);
  command
      ->add_option("--replicas", options->replicas,
                   "Runs that --trainer --device cuda trains side by side")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024))
      ->needs(trainer);
  command->add_flag("--json", options->json, "Print one JSON object per line");
  command->footer(
      "The answer is checked first: outputs and every gradient may be off from a float64 "
      "reference\n"
      "by at most twice what the float32 reference is, or by one unit in the last place of\n"
      "float32 (four of the largest value); otherwise nothing is timed (exit 1).\n"
      "A training step is forward + backward with gradients for weights and biases, not for x.\n"
      "libtorch (torch::nn::LSTM) and onednn (its LSTM primitives) cannot detach: one figure\n"
      "serves every row. reference is the paper's loop with detach(), the median of at most two\n"
      "repeats. All run in this process with the same threads; LibTorch's operations get them in\n"
      "OpenMP and BLAS, or in BLAS alone where that is quicker.\n"
      "peak: the step's 2*B*4H*(2*T*(I+H) + kept*H) FLOPs, kept = steps after the first that are\n"
      "not detached, per second of train, over the multiply-add rate measured here in float32.\n"
      "With --device cuda the peers are cudnn (torch::nn::LSTM, which cannot detach) and cell "
      "loop\n"
      "(LibTorch's LSTM cell step by step with detach(), at most two repeats), all in float32 "
      "with\n"
      "TF32 off. Steps are queued as in a training loop and timed by events on the stream; host "
      "is\n"
      "the time the host needs to queue one: near train, the host is the limit. x is the peer's\n"
      "train over ours.");
  command->callback([options] { run_bench(*options); });
}

}  // namespace hdetach::cli
