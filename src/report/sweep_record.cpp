#include "report/sweep_record.h"

#include <algorithm>
#include <cmath>

namespace hdetach::report {

void add(std::optional<Spread>& spread, double value) {
  if (!spread) spread = Spread{0, 0, value, value};
  ++spread->count;
  spread->mean += (value - spread->mean) / spread->count;
  spread->low = std::min(spread->low, value);
  spread->high = std::max(spread->high, value);
}

SweepRecord read_sweep(const train::Sweep& sweep, const std::filesystem::path& folder,
                       Notices* notices) {
  SweepRecord record;
  record.sweep = sweep;
  record.runs.resize(sweep.settings.size());
  for (const train::SweepRun& run : train::runs(sweep)) {
    record.runs[run.setting].push_back(read_run(folder / run.name, notices));
  }
  return record;
}

Measure measure(const SweepRecord& record) {
  if (record.sweep.task == "copy") return {"accuracy", "%", 1, 1.0 / 8};    // of the symbols
  if (record.sweep.task == "mnist") return {"accuracy", "%", 1, 1.0 / 10};  // of the digits
  if (record.sweep.task != "caption") return {"accuracy", "%", 1, std::nullopt};
  double most = 0;
  for (const auto& runs : record.runs) {
    for (const RunRecord& run : runs) {
      const Epoch* best = best_epoch(run);
      if (best != nullptr) most = std::max(most, best->valid_measure);
    }
  }
  return {"CIDEr", "", 0.4 * std::max(1.0, std::ceil(most / 0.4)), std::nullopt};
}

SettingFigures figures(const SweepRecord& record, size_t setting) {
  const std::vector<int64_t>& delays = record.sweep.eval_delays;
  SettingFigures out;
  out.eval.resize(delays.size());
  for (const RunRecord& run : record.runs[setting]) {
    ++out.runs;
    out.over += run.result.has_value();
    out.diverged += diverged(run);
    if (const Epoch* best = best_epoch(run)) add(out.best, best->valid_measure);
    if (const auto late = late_accuracy(run)) add(out.late, *late);
    if (const Epoch* first = first_epoch_at(run, record.sweep.threshold)) {
      add(out.epochs_to_threshold, static_cast<double>(first->epoch));
    }
    if (run.result && run.result->test_measure) add(out.test, *run.result->test_measure);
    if (const auto norm = largest_grad_norm(run)) {
      out.largest_grad_norm = std::max(out.largest_grad_norm.value_or(0), *norm);
    }
    out.seconds += seconds(run);
    for (size_t i = 0; i < delays.size(); ++i) {
      if (const auto accuracy = accuracy_at(run, delays[i])) add(out.eval[i], *accuracy);
    }
  }
  return out;
}

}  // namespace hdetach::report
