#include "report/run_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "formats/json_object.h"
#include "report/median.h"
#include "report/run_lines.h"
#include "train/run_history.h"
#include "train/seal.h"

namespace hdetach::report {
namespace {

constexpr size_t kLateEpochs = 20;

std::vector<Epoch> read_epochs(const std::filesystem::path& path, Notices* notices) {
  std::vector<Epoch> epochs;
  int again = 0;
  for_each_line(path, notices, [&](std::string_view line, const std::string& place) {
    const Epoch epoch = train::parse_metrics(std::string(line), place);
    // A run that was cut off after this line and before its state was saved writes the epoch again.
    again += !epochs.empty() && epochs.back().epoch >= epoch.epoch;
    while (!epochs.empty() && epochs.back().epoch >= epoch.epoch) epochs.pop_back();
    epochs.push_back(epoch);
  });
  if (notices != nullptr && again > 0) {
    notices->add(
        fmt::format("{}: {} lines write epochs again; the later ones count", path.string(), again));
  }
  return epochs;
}

std::vector<Evaluation> read_evaluations(const std::filesystem::path& path) {
  const std::string text = read_text(path), place = path.string() + ":1";
  check_nesting(text, place);
  const JsonObject object(text, place);
  std::vector<Evaluation> evaluations;
  for (const nlohmann::json& entry : object.list("accuracy")) {
    const JsonObject point(entry, place);
    evaluations.push_back({point.whole("delay"), point.number("accuracy")});
  }
  return evaluations;
}

// Calls read(path) where the file is there; with `notices` an error becomes one of them.
template <class Read>
void read_if_there(const std::filesystem::path& path, Notices* notices, const char* consequence,
                   const Read& read) {
  try {
    if (std::filesystem::exists(path)) read(path);
  } catch (const std::exception& problem) {
    if (notices == nullptr) throw;
    notices->add(fmt::format("{}; {}", problem.what(), consequence));
  }
}

}  // namespace

RunRecord read_run(const std::filesystem::path& folder, Notices* notices) {
  using Path = std::filesystem::path;
  RunRecord run;
  const char* const left_out = "the file is left out";
  read_if_there(
      folder / "config.toml", notices, "its settings are shown as they stand",
      [&](const Path& path) { train::check_sealed_text(read_text(path), path.string()); });
  read_if_there(
      folder / "config.toml", notices, "a newer version may have written it; the run is shown",
      [&](const Path& path) { run.config = train::parse_config(read_text(path), path.string()); });
  read_if_there(folder / "metrics.jsonl", notices, left_out,
                [&](const Path& path) { run.epochs = read_epochs(path, notices); });
  read_if_there(folder / "result.json", notices, left_out,
                [&](const Path&) { run.result = train::read_result(folder, kLargestFile); });
  // Who works with a run checks all of it, who shows it tells what it sees.
  if (notices != nullptr && (run.result || std::filesystem::exists(folder / "state.safetensors"))) {
    read_if_there(folder, notices, "the run is shown as it stands",
                  [&](const Path&) { train::check_lines(folder, kLargestFile); });
  }
  read_if_there(folder / "eval.json", notices, left_out,
                [&](const Path& path) { run.evaluations = read_evaluations(path); });
  return run;
}

bool diverged(const RunRecord& run) { return run.result && run.result->status == "diverged"; }

const Epoch* best_epoch(const RunRecord& run) {
  const Epoch* best = nullptr;
  for (const Epoch& epoch : run.epochs) {
    if (best == nullptr || epoch.valid_measure > best->valid_measure) best = &epoch;
  }
  return best;
}

std::optional<double> late_accuracy(const RunRecord& run) {
  if (run.epochs.empty()) return std::nullopt;
  std::vector<double> late;
  const size_t count = std::min(kLateEpochs, run.epochs.size());
  for (size_t i = run.epochs.size() - count; i < run.epochs.size(); ++i) {
    late.push_back(run.epochs[i].valid_measure);
  }
  return median(std::move(late));
}

const Epoch* first_epoch_at(const RunRecord& run, double accuracy) {
  for (const Epoch& epoch : run.epochs) {
    if (epoch.valid_measure >= accuracy) return &epoch;
  }
  return nullptr;
}

std::optional<double> largest_grad_norm(const RunRecord& run) {
  std::optional<double> largest;
  for (const Epoch& epoch : run.epochs) {
    const double norm = std::isnan(epoch.grad_norm_max) ? std::numeric_limits<double>::infinity()
                                                        : epoch.grad_norm_max;
    largest = std::max(largest.value_or(0), norm);
  }
  return largest;
}

double seconds(const RunRecord& run) { return run.epochs.empty() ? 0 : run.epochs.back().seconds; }

std::optional<double> accuracy_at(const RunRecord& run, int64_t delay) {
  for (const Evaluation& evaluation : run.evaluations) {
    if (evaluation.delay == delay) return evaluation.accuracy;
  }
  return std::nullopt;
}

}  // namespace hdetach::report
