// hdetach xray RUN | --random: where the gradient of a network flows, by how many times its paths
// went through h.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/machine.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "cli/trained_run.h"
#include "report/run_record.h"
#include "train/config.h"
#include "train/run_folder.h"
#include "train/xray_run.h"
#include "xray/record.h"

namespace hdetach::cli {
namespace {

using xray::Record;

struct XrayCommand {
  std::string run;
  bool random = false;
  int64_t hidden = 128, steps = 100, seed = 1;
  std::vector<double> weight_scales = {0.5, 1, 2, 4};
  std::string weights = "best";
  std::string data;  // empty means the folder the run was trained on
  train::XrayOptions options;
  int threads = usable_cores();
  bool json = false;
};

std::string cell_text(double value, bool share) {
  if (!std::isfinite(value)) return "-";
  if (!share) return fmt::format("{:.3g}", value);
  // Below a hundredth of a percent only the size tells.
  return value >= 1e-4 || value == 0 ? fmt::format("{:.2f}%", 100 * value)
                                     : fmt::format("{:.0e}%", 100 * value);
}

// What the rows differ in: the weight scale of a random network, the epoch of a run.
std::string row_name(const Record& record) {
  if (record.weight_scale) return fmt::format("{:g}", *record.weight_scale);
  return record.epoch ? fmt::format("{}", *record.epoch) : "-";
}

void print_weights(const std::vector<Record>& records, const char* rows) {
  print("{:>12}  {:>6}  {:>10}  {:>9}   norm by order:", rows, "detach", "cell share", "norm");
  for (const std::string& order : records[0].orders) print(" {:>9}", order);
  print("\n");
  for (const Record& record : records) {
    print("{:>12}  {:>6g}  {:>10}  {:>9}                 ", row_name(record), record.detach,
          cell_text(record.weights.cell_share, true), cell_text(record.weights.norm, false));
    for (const double norm : record.weights.by_order) print(" {:>9}", cell_text(norm, false));
    print("\n");
  }
}

// One line a record: the cell path's share, or the whole norm, at each lag.
void print_states(const std::vector<Record>& records, const char* rows, bool share) {
  print("{:>12}  {:>6}   lag:", rows, "detach");
  for (const int64_t lag : records[0].lags) print(" {:>8}", lag);
  print("\n");
  for (const Record& record : records) {
    print("{:>12}  {:>6g}       ", row_name(record), record.detach);
    for (const xray::Split& split : record.states) {
      print(" {:>8}", cell_text(share ? split.cell_share : split.norm, share));
    }
    print("\n");
  }
}

void print_tables(const std::vector<Record>& records, const char* rows) {
  print("gradient of the loss into the weights; order: times its path went through h\n");
  print_weights(records, rows);
  print("\ncell share of the last step's gradient into the states so many steps before\n");
  print_states(records, rows, true);
  print("\nits norm\n");
  print_states(records, rows, false);
}

void print_record_lines(const std::vector<Record>& records) {
  for (const Record& record : records) print("{}\n", to_json(record));
}

void xray_random_networks(const XrayCommand& command) {
  std::vector<Record> all;
  for (const double scale : command.weight_scales) {
    const auto records =
        train::xray_random(command.hidden, command.steps, scale, command.seed, command.options);
    if (command.json) {
      print_record_lines(records);
      flush_output();
    }
    all.insert(all.end(), records.begin(), records.end());
  }
  if (command.json) return;
  print("random LSTM: {} units, {} steps, seed {}\n", command.hidden, command.steps, command.seed);
  print_tables(all, "weight scale");
}

void xray_trained_run(const XrayCommand& command) {
  train::Config config = read_trained_run(command.run);
  if (!command.data.empty()) {
    if (config.task == "copy") {
      throw CLI::ValidationError(
          fmt::format("--data does not apply to {}, a run of task copy", command.run));
    }
    config.data = command.data;
  }
  const bool best = command.weights == "best";
  const report::RunRecord run = report::read_run(command.run);
  const report::Epoch* const last = run.epochs.empty() ? nullptr : &run.epochs.back();
  std::vector<Record> records;
  try {
    records = train::xray_run(config, command.run, best, best ? report::best_epoch(run) : last,
                              command.options);
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("RUN {}", error.what()));
  }
  const std::vector<Record> recorded = train::read_xrays(command.run);
  if (command.json) {
    print_record_lines(records);
    print_record_lines(recorded);
    return;
  }
  print("{}: {} weights, {} steps, first rows of the validation set\n", command.run,
        command.weights, records[0].steps);
  print_tables(records, "epoch");
  if (recorded.empty()) {
    print("\nno x-ray was recorded in training (hdetach train --xray-every N does)\n");
    return;
  }
  print("\nrecorded in training\n");
  print_weights(recorded, "epoch");
}

void run_xray(const CLI::App& app, const XrayCommand& command) {
  if (command.random == !command.run.empty()) {
    throw CLI::ValidationError(
        command.random
            ? fmt::format("RUN {} and --random exclude each other; give one of them", command.run)
            : "RUN is missing; name the folder of a run, or give --random");
  }
  const char* const for_run[] = {"--weights", "--data"};
  const char* const for_random[] = {"--hidden", "--steps", "--weight-scale", "--seed"};
  const auto refuse = [&](const auto& flags, const char* other) {
    for (const char* flag : flags) {
      if (app.count(flag) == 0) continue;
      throw CLI::ValidationError(fmt::format("{} does not apply to {}; leave it out", flag, other));
    }
  };
  command.random ? refuse(for_run, "--random") : refuse(for_random, ("RUN " + command.run).c_str());
  set_threads({command.threads, command.threads});
  try {
    command.random ? xray_random_networks(command) : xray_trained_run(command);
  } catch (const train::LagError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
}

}  // namespace

void register_xray(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "xray",
      "Measure where the gradient flows: along the cell, or through h, how often and how far back");
  auto command = std::make_shared<XrayCommand>();
  app->add_option("RUN", command->run,
                  "Folder of a run of copy, mnist or show-tell; its validation set is read");
  app->add_flag("--random", command->random, "Random networks instead of a run");
  app->add_option("--hidden", command->hidden, "Units, --random only")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  app->add_option("--steps", command->steps, "Steps of a sequence, --random only")
      ->check(CLI::Range(int64_t{1}, int64_t{10000}))
      ->capture_default_str();
  app->add_option("--weight-scale", command->weight_scales,
                  "Factors on weights that start as torch.nn.LSTM's, --random only")
      ->delimiter(',')
      ->check(number_in(1e-6, 1e6))
      ->default_str("0.5,1,2,4");
  app->add_option("--seed", command->seed, "Seed of weights, inputs and loss, --random only")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000000}))
      ->capture_default_str();
  app->add_option("--weights", command->weights, "best or last, RUN only")
      ->check(CLI::IsMember({"best", "last"}))
      ->capture_default_str();
  app->add_option("--data", command->data,
                  "Folder of the data, mnist and caption runs only (default: the run's)");
  app->add_option("--detach", command->options.detach,
                  "Detach probabilities, taken as the mean over their draws (default: the run's of "
                  "that epoch; 0,0.25,0.5 for --random)")
      ->delimiter(',')
      ->check(number_in(0.0, 1.0));
  app->add_option("--lags", command->options.lags,
                  "Steps before the last loss at which states are looked at (default: 0,1,2,4,.. "
                  "and the first step)")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}));
  app->add_option("--orders", command->options.highest_order,
                  "Highest order shown apart; paths through h more often are the rest")
      ->check(CLI::Range(int64_t{0}, int64_t{64}))
      ->capture_default_str();
  add_threads(*app, command->threads, "Threads; the result does not depend on it")
      ->default_str(std::to_string(command->threads));
  app->add_flag("--json", command->json,
                "Print a JSON object a line; of a run also those recorded in training");
  app->callback([app, command] {
    if (command->random && command->options.detach.empty()) {
      command->options.detach = {0, 0.25, 0.5};
    }
    run_xray(*app, *command);
  });
}

}  // namespace hdetach::cli
