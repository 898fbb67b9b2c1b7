// hdetach train copy|mnist: one run, in a folder that can be resumed.
#include <fmt/core.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/interrupt.h"
#include "cli/live_line.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "formats/files.h"
#include "hdetach/backend.h"
#include "report/summary.h"
#include "train/config.h"
#include "train/run.h"
#include "train/run_folder.h"

namespace hdetach::cli {
namespace {

using train::Config;

struct TrainOptions {
  std::map<std::string, std::string> values;  // of the configuration's flags, by name
  std::string config;
  std::string out;
  bool resume = false;
  bool quiet = false;
  int threads = usable_cores();
};

class Printer : public train::Observer {
 public:
  Printer(const Config& config, bool quiet) : config_(config), quiet_(quiet) {}

  void started(const train::Progress& progress, bool resumed) override {
    first_update_ = progress.update;
    first_seconds_ = progress.seconds;
    if (progress.epoch > 0) accuracy_ = fmt::format("best {:.2f}%", 100 * progress.best_accuracy);
    if (quiet_ || !resumed) return;
    fmt::print("going on at update {} (epoch {} of {})\n", progress.update, progress.epoch + 1,
               config_.epochs);
  }

  void updated(const train::Progress& progress, const train::Update& update) override {
    if (!quiet_ && line_.due()) line_.show(text(progress, fmt::format("loss {:.4f}", update.loss)));
  }

  void validating(const train::Progress& progress) override {
    if (!quiet_ && line_.due()) line_.show(text(progress, "validating"));
  }

  void finished_epoch(const train::EpochMetrics& metrics, bool best) override {
    accuracy_ = fmt::format("accuracy {:.2f}%", 100 * metrics.valid_accuracy);
    if (quiet_) return;
    if (best || metrics.epoch == config_.epochs) {
      line_.clear();
      fmt::print("epoch {:>4}  loss {:.4f}  validation loss {:.4f}  accuracy {:.2f}%{}\n",
                 metrics.epoch, metrics.train_loss, metrics.valid_loss,
                 100 * metrics.valid_accuracy, best ? "  best so far" : "");
      std::fflush(stdout);
    }
  }

  void clear() { line_.clear(); }

 private:
  std::string text(const train::Progress& progress, const std::string& now) const {
    const int64_t within = progress.update - progress.epoch * config_.updates_per_epoch;
    std::string out = fmt::format("epoch {}/{}  update {}/{}  {}", progress.epoch + 1,
                                  config_.epochs, within, config_.updates_per_epoch, now);
    if (!accuracy_.empty()) out += "  " + accuracy_;
    // Nothing is known of the speed before the first update of this process.
    const double updates = static_cast<double>(progress.update - first_update_);
    const double rate = updates / (progress.seconds - first_seconds_);
    if (updates == 0) return out;
    const int64_t left = config_.epochs * config_.updates_per_epoch - progress.update;
    return out + fmt::format("  {:.1f} updates/s  {} left", rate,
                             report::duration(static_cast<double>(left) / rate));
  }

  const Config& config_;
  bool quiet_;
  LiveLine line_{stdout, LiveLine::Elsewhere::kLines};
  int64_t first_update_ = 0;
  double first_seconds_ = 0;
  std::string accuracy_;
};

std::string session(const TrainOptions& options) {
  nlohmann::ordered_json json;
  json["version"] = version();
  json["commit"] = commit();
  json["cpu"] = cpu_model();
  json["kernel"] = active_kernel();
  json["threads"] = options.threads;
  json["libtorch"] = TORCH_VERSION;
  return json.dump();
}

Config resolve(const CLI::App& command, const std::string& task, const TrainOptions& options) {
  Config config = train::default_config(task);
  try {
    if (!options.config.empty()) {
      config = train::parse_config(files::read(options.config), options.config);
      if (config.task != task) {
        throw CLI::ValidationError(fmt::format("--config {} is for task {}; use hdetach train {}",
                                               options.config, config.task, config.task));
      }
    }
    for (const train::Field& field : train::fields(task)) {
      const std::string flag = fmt::format("--{}", field.name);
      if (command.count(flag) > 0) train::set(config, field, options.values.at(field.name));
    }
    train::check(config);
  } catch (const toml::Error& error) {
    throw CLI::ValidationError(error.what());
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
  return config;
}

void report(const train::RunResult& result, const std::string& out, bool quiet) {
  if (result.status == "diverged") {
    throw std::runtime_error(fmt::format("the run in {} diverged: {}", out, result.message));
  }
  if (quiet) return;
  fmt::print("{} after {} epochs ({} updates, {}): best validation accuracy {:.2f}% at epoch {}\n",
             result.message, result.epochs, result.updates, report::duration(result.seconds),
             100 * result.best_valid_accuracy, result.best_epoch);
  if (result.test_accuracy) {
    fmt::print("test accuracy of that model: {:.2f}%\n", 100 * *result.test_accuracy);
  }
  fmt::print("run folder: {}\n", out);
}

void run_train(const CLI::App& command, const std::string& task, const TrainOptions& options) {
  const Config config = resolve(command, task, options);
  if (options.out.empty()) throw CLI::ValidationError("--out is empty; name a folder");
  set_threads({options.threads, options.threads});
  const auto* const signal = watch_signals();
  train::RunFolder folder(options.out);
  Printer printer(config, options.quiet);
  std::optional<train::RunResult> result;
  try {
    result = train::run(config, folder, {options.resume, session(options)}, printer, signal);
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
  printer.clear();
  if (!result) {
    if (!options.quiet) {
      fmt::print("saved; go on with: hdetach train {} --config {}/config.toml --out {} --resume\n",
                 task, options.out, options.out);
    }
    throw ExitCode{128 + *signal};
  }
  report(*result, options.out, options.quiet);
}

void add_task(CLI::App& train, const std::string& task, const std::string& help) {
  CLI::App* command = train.add_subcommand(task, help);
  auto options = std::make_shared<TrainOptions>();
  options->out = "runs/" + task;
  const Config defaults = train::default_config(task);
  for (const train::Field& field : train::fields(task)) {
    const std::string flag = fmt::format("--{}", field.name);
    std::string& value = options->values[field.name];
    if (std::holds_alternative<bool Config::*>(field.member)) {
      command->add_flag(flag + "{true}", value, field.help);
      continue;
    }
    const bool whole = std::holds_alternative<int64_t Config::*>(field.member);
    const bool real = std::holds_alternative<double Config::*>(field.member);
    command->add_option(flag, value, field.help)
        ->type_name(whole ? "INT" : (real ? "FLOAT" : "TEXT"))
        ->default_str(train::text(defaults, field));
  }
  command
      ->add_option("--config", options->config,
                   "Settings from a TOML file; its keys are the flags above without --, and "
                   "flags override it")
      ->type_name("FILE");
  command->add_option("--out", options->out, "Folder of the run")->capture_default_str();
  command->add_flag("--resume", options->resume,
                    "Go on with the run in --out, to the same bits; start one if there is none");
  command->add_option("--threads", options->threads, "Threads; the result does not depend on it")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--quiet", options->quiet, "Print nothing but errors");
  command->callback([command, task, options] { run_train(*command, task, *options); });
}

}  // namespace

void register_train(CLI::App& program) {
  CLI::App* train = program.add_subcommand("train", "Train a model; defaults are the paper's");
  train->require_subcommand(1);
  add_task(*train, "copy", "The copying task (figure 2)");
  add_task(*train, "mnist", "Sequential and permuted MNIST (figures 3, 5, 6, 7; table 2)");
}

}  // namespace hdetach::cli
