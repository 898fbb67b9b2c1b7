#include "cli/train_together.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "cli/train_output.h"
#include "formats/files.h"
#include "train/config.h"
#include "train/run.h"
#include "train/run_folder.h"

namespace hdetach::cli {
namespace {

struct TogetherOptions {
  std::vector<std::string> files;
  int threads = usable_cores();
};

// A run with its folder and its log: what `hdetach train` alone would print goes there.
struct Together {
  train::Config config;
  std::string out;
  std::unique_ptr<FILE, int (*)(FILE*)> log{nullptr, std::fclose};
  std::unique_ptr<train::RunFolder> folder;
  std::unique_ptr<TrainPrinter> printer;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an unknown error";
  }
}

void note(const Together& run, const std::string& error) {
  print(run.log ? run.log.get() : stderr, "hdetach: error: {}\n", error);
}

void open(Together& run, const std::string& file) {
  const std::filesystem::path path(file);
  run.out = (path.parent_path() / path.stem()).string();
  run.config = train::parse_config(files::read(path), file);
  train::check_device(run.config);
  files::make_folder(run.out);
  run.log.reset(std::fopen((run.out + "/train.log").c_str(), "a"));
  if (!run.log) throw std::runtime_error(fmt::format("cannot open {}/train.log", run.out));
  run.printer = std::make_unique<TrainPrinter>(run.config, false, run.log.get());
  run.folder = std::make_unique<train::RunFolder>(run.out);
}

// True when the run is over and did not diverge.
bool close(Together& run, const train::Outcome& outcome) {
  run.printer->clear();
  if (outcome.error) {
    note(run, message_of(outcome.error));
  } else if (!outcome.result) {
    print_saved(run.config.task, run.out, run.log.get());
  } else if (outcome.result->status == "diverged") {
    note(run, "the run diverged: " + outcome.result->message);
  } else {
    print_result(*outcome.result, run.out, run.log.get());
    return true;
  }
  return false;
}

void run_together(const TogetherOptions& options) {
  set_threads({options.threads, options.threads});
  const auto* const signal = watch_signals();
  std::deque<Together> runs;  // of those that can begin
  size_t failed = 0;
  for (const std::string& file : options.files) {
    try {
      open(runs.emplace_back(), file);
    } catch (const std::exception& error) {
      note(runs.back(), error.what());
      runs.pop_back();
      ++failed;
    }
  }
  std::vector<train::GroupMember> members;
  for (Together& run : runs) {
    members.push_back({run.config,
                       run.folder.get(),
                       {true, session_json(run.config, options.threads)},
                       run.printer.get()});
  }
  std::vector<train::Outcome> outcomes;
  try {
    outcomes = train::run_group(members, signal);
  } catch (const std::exception& error) {
    for (const Together& run : runs) note(run, error.what());
    throw;
  }
  for (size_t i = 0; i < runs.size(); ++i) failed += !close(runs[i], outcomes[i]);
  if (*signal != 0) throw ExitCode{128 + *signal};
  if (failed > 0) {
    throw std::runtime_error(fmt::format("{} of {} runs failed; their train.log tells why", failed,
                                         options.files.size()));
  }
}

}  // namespace

void add_together(CLI::App& train) {
  CLI::App* command = train.add_subcommand(
      "together", "Several runs of the same shapes side by side on one GPU, as hdetach sweep does");
  auto options = std::make_shared<TogetherOptions>();
  command
      ->add_option("FILE", options->files,
                   "Settings of each run; the run of a/b.toml is in the folder a/b and goes on "
                   "there, its output in train.log")
      ->required();
  add_threads(*command, options->threads, "Threads; the result does not depend on it")
      ->default_str(std::to_string(options->threads));
  command->callback([options] { run_together(*options); });
}

}  // namespace hdetach::cli
