// hdetach eval: the best model of a run on sequences it has never seen.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/live_line.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "cli/trained_run.h"
#include "report/summary.h"
#include "train/config.h"
#include "train/evaluate_on.h"
#include "train/make_task.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/sequence_run.h"

namespace hdetach::cli {
namespace {

// Table 1 of the paper, trained at delay 100: plain, detach 0.5, detach 0.25, in percent.
const std::map<int64_t, std::array<double, 3>> kTable1 = {
    {200, {64.85, 74.79, 90.72}},  {400, {48.17, 54.91, 77.76}},  {500, {43.03, 52.43, 74.68}},
    {1000, {28.82, 43.54, 63.19}}, {2000, {19.48, 34.34, 51.83}}, {5000, {14.58, 24.55, 42.35}},
};

struct EvalOptions {
  std::string run;
  std::vector<int64_t> delays;  // empty means those of table 1
  int64_t sequences = 5000;
  std::string data;  // empty means the folder the run was trained on
  int threads = usable_cores();
  std::string device;  // empty means where it was trained, where that is to be had
  bool json = false;
};

struct Row {
  int64_t delay;
  train::Score score;
};

class Evaluation {
 public:
  Evaluation(const EvalOptions& options, train::Config config)
      : config_(std::move(config)), signal_(watch_signals()) {
    set_threads({options.threads, options.threads});
  }

  train::Score score(SequenceClassifier& model, std::shared_ptr<const tasks::SequenceSet> set,
                     const std::string& name) {
    const auto start = std::chrono::steady_clock::now();
    const auto result = train::evaluate_on(config_, model, set, [&](double share) {
      if (share > 0 && line_.due()) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        line_.show(fmt::format("{}  {:.0f}%  {} left", name, 100 * share,
                               report::duration(passed.count() * (1 - share) / share)));
      }
      return *signal_ == 0;
    });
    line_.clear();
    if (!result) throw ExitCode{128 + *signal_};
    return *result;
  }

 private:
  train::Config config_;
  const volatile std::sig_atomic_t* signal_;
  LiveLine line_{stderr, LiveLine::Elsewhere::kSilent};
};

void eval_copy(const EvalOptions& options, const train::Config& config) {
  std::vector<int64_t> delays = options.delays;
  if (delays.empty()) {
    for (const auto& [delay, paper] : kTable1) delays.push_back(delay);
  }
  Evaluation evaluation(options, config);
  SequenceClassifier model =
      train::make_model(config, *train::transfer_set(config, config.delay, 1));
  train::load_best(model.parameters(), options.run);
  nlohmann::ordered_json json = {{"run", options.run},
                                 {"task", "copy"},
                                 {"model", "best.safetensors"},
                                 {"sequences", options.sequences}};
  if (!options.json) {
    print(
        "trained at delay {}, detach {}; {} fresh sequences a delay, last {} steps\n"
        "{:>6}  {:>8}  {:>8}   paper: {:>7} {:>11} {:>12}\n",
        config.delay, config.detach, options.sequences, config.symbols, "delay", "accuracy", "loss",
        "plain", "detach 0.5", "detach 0.25");
  }
  for (const int64_t delay : delays) {
    const auto set = train::transfer_set(config, delay, options.sequences);
    const train::Score score =
        evaluation.score(model, set, fmt::format("{} delay {}", options.run, delay));
    if (options.json) {
      json["accuracy"].push_back(
          {{"delay", delay}, {"accuracy", score.measure}, {"loss", score.loss}});
      continue;
    }
    print("{:>6}  {:>7.2f}%  {:>8.4f}", delay, 100 * score.measure, score.loss);
    if (const auto paper = kTable1.find(delay); paper != kTable1.end()) {
      const auto& [plain, half, quarter] = paper->second;
      print("          {:>7.2f} {:>11.2f} {:>12.2f}", plain, half, quarter);
    }
    print("\n");
    flush_output();
  }
  if (options.json) print("{}\n", json.dump());
}

void eval_mnist(const EvalOptions& options, train::Config config) {
  if (!options.data.empty()) config.data = options.data;
  const tasks::Task task = train::make_task(config);
  Evaluation evaluation(options, config);
  SequenceClassifier model = train::make_model(config, *task.test);
  train::load_best(model.parameters(), options.run);
  const train::Score score = evaluation.score(model, task.test, options.run);
  if (options.json) {
    const nlohmann::ordered_json json = {{"run", options.run},
                                         {"task", "mnist"},
                                         {"model", "best.safetensors"},
                                         {"sequences", task.test->size()},
                                         {"test_accuracy", score.measure},
                                         {"test_loss", score.loss}};
    print("{}\n", json.dump());
  } else {
    print("test accuracy {:.2f}%, loss {:.4f}, {} images\n", 100 * score.measure, score.loss,
          task.test->size());
  }
}

void run_eval(const EvalOptions& options, const CLI::App& command) {
  train::Config config = read_trained_run(options.run);
  if (config.task == "caption") {
    throw CLI::ValidationError(
        fmt::format("RUN {0} is a run of task caption; use hdetach caption {0} and hdetach score",
                    options.run));
  }
  const bool copy = config.task == "copy";
  for (const char* flag : {"--delay", "--sequences", "--data"}) {
    if (command.count(flag) == 0 || copy != (std::string(flag) == "--data")) continue;
    throw CLI::ValidationError(
        fmt::format("{} does not apply to {}, a run of task {}", flag, options.run, config.task));
  }
  choose_device(options.device, config);
  copy ? eval_copy(options, config) : eval_mnist(options, config);
}

}  // namespace

void register_eval(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "eval", "Evaluate a run's best model: copy runs at other delays, mnist runs on the test set");
  auto options = std::make_shared<EvalOptions>();
  command->add_option("RUN", options->run, "Folder of the run")->required();
  command->add_option("--delay", options->delays, "Delays to try, copy runs only")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->default_str("200,400,500,1000,2000,5000");
  command->add_option("--sequences", options->sequences, "Sequences a delay, copy runs only")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}))
      ->capture_default_str();
  command->add_option("--data", options->data,
                      "Folder of the IDX files, mnist runs only (default: the run's)");
  add_threads(*command, options->threads, "Threads; the result does not depend on it")
      ->default_str(std::to_string(options->threads));
  command
      ->add_option("--device", options->device,
                   "cpu or cuda (default: where the run was trained, else cpu)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([command, options] { run_eval(*options, *command); });
}

}  // namespace hdetach::cli
