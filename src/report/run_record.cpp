#include "report/run_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/files.h"
#include "formats/json_object.h"
#include "report/median.h"

namespace hdetach::report {
namespace {

constexpr size_t kLateEpochs = 20;

std::vector<Epoch> read_epochs(const std::filesystem::path& path) {
  const std::string text = files::read(path);
  std::vector<Epoch> epochs;
  size_t start = 0;
  int line = 1;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1, ++line) {
    const Epoch epoch = train::parse_metrics(text.substr(start, end - start),
                                             fmt::format("{}:{}", path.string(), line));
    // A run that was cut off after this line and before its state was saved writes the epoch again.
    while (!epochs.empty() && epochs.back().epoch >= epoch.epoch) epochs.pop_back();
    epochs.push_back(epoch);
  }
  return epochs;
}

std::vector<Evaluation> read_evaluations(const std::filesystem::path& path) {
  const JsonObject object(files::read(path), path.string() + ":1");
  std::vector<Evaluation> evaluations;
  for (const nlohmann::json& entry : object.list("accuracy")) {
    const JsonObject point(entry, path.string() + ":1");
    evaluations.push_back({point.whole("delay"), point.number("accuracy")});
  }
  return evaluations;
}

}  // namespace

RunRecord read_run(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  RunRecord run;
  const fs::path config = folder / "config.toml", metrics = folder / "metrics.jsonl",
                 result = folder / "result.json", evaluations = folder / "eval.json";
  if (fs::exists(config)) run.config = train::parse_config(files::read(config), config.string());
  if (fs::exists(metrics)) run.epochs = read_epochs(metrics);
  if (fs::exists(result)) {
    run.result = train::parse_result(files::read(result), result.string() + ":1");
  }
  if (fs::exists(evaluations)) run.evaluations = read_evaluations(evaluations);
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
