// hdetach train copy|mnist|caption: one run, in a folder that can be resumed. hdetach train
// together: several of them side by side on a GPU, for hdetach sweep.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "cli/interrupt.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/train_output.h"
#include "cli/train_together.h"
#include "formats/files.h"
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
    train::check_device(config);
  } catch (const toml::Error& error) {
    throw CLI::ValidationError(error.what());
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
  return config;
}

void run_train(const CLI::App& command, const std::string& task, const TrainOptions& options) {
  const Config config = resolve(command, task, options);
  if (options.out.empty()) throw CLI::ValidationError("--out is empty; name a folder");
  set_threads({options.threads, options.threads});
  const auto* const signal = watch_signals();
  train::RunFolder folder(options.out);
  TrainPrinter printer(config, options.quiet, stdout);
  std::optional<train::RunResult> result;
  try {
    result = train::run(config, folder, {options.resume, session_json(config, options.threads)},
                        printer, signal);
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
  printer.clear();
  if (!result) {
    if (!options.quiet) print_saved(task, options.out, stdout);
    throw ExitCode{128 + *signal};
  }
  if (result->status == "diverged") {
    throw std::runtime_error(
        fmt::format("the run in {} diverged: {}", options.out, result->message));
  }
  if (!options.quiet) print_result(*result, options.out, stdout);
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
  add_threads(*command, options->threads, "Threads; the result does not depend on it")
      ->default_str(std::to_string(options->threads));
  command->add_flag("--quiet", options->quiet, "Print nothing but errors");
  command->callback([command, task, options] { run_train(*command, task, *options); });
}

}  // namespace

void register_train(CLI::App& program) {
  CLI::App* train = program.add_subcommand("train", "Train a model; defaults are the paper's");
  train->require_subcommand(1);
  add_task(*train, "copy", "The copying task (figure 2)");
  add_task(*train, "mnist", "Sequential and permuted MNIST (figures 3, 5, 6, 7; table 2)");
  add_task(*train, "caption", "Captions of images (table 3)");
  add_together(*train);
}

}  // namespace hdetach::cli
