// What a run folder holds: its configuration, its curve and its result, and the figures drawn from
// them. A run that is under way or was cut off gives what there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/notices.h"
#include "train/config.h"
#include "train/metrics.h"

namespace hdetach::report {

using Epoch = train::EpochMetrics;

struct Evaluation {
  int64_t delay = 0;
  double accuracy = 0;
};

struct RunRecord {
  std::optional<train::Config> config;
  std::vector<Epoch> epochs;
  std::optional<train::RunResult> result;  // when the run is over
  std::vector<Evaluation> evaluations;
};

// Throws std::runtime_error ("file:line: ...") on a file that is not what the program writes; with
// `notices` it leaves out what is wrong instead, and never throws. The last line of metrics.jsonl
// may be incomplete; it is left out.
RunRecord read_run(const std::filesystem::path& folder, Notices* notices = nullptr);

bool diverged(const RunRecord& run);

const Epoch* best_epoch(const RunRecord& run);  // null without an epoch; the earliest of equals
// The median accuracy of the last 20 epochs: solved runs dip now and then.
std::optional<double> late_accuracy(const RunRecord& run);
const Epoch* first_epoch_at(const RunRecord& run, double accuracy);  // null when never reached
std::optional<double> largest_grad_norm(const RunRecord& run);  // infinite when one was not finite
double seconds(const RunRecord& run);
std::optional<double> accuracy_at(const RunRecord& run, int64_t delay);  // of an evaluation

}  // namespace hdetach::report
