// The run folders of a sweep, setting by setting, and what its table says of each setting.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/notices.h"
#include "report/run_record.h"
#include "train/sweep_file.h"

namespace hdetach::report {

struct SweepRecord {
  train::Sweep sweep;
  std::vector<std::vector<RunRecord>> runs;  // [setting][seed]
};

// With `notices` what cannot be read is left out.
SweepRecord read_sweep(const train::Sweep& sweep, const std::filesystem::path& folder,
                       Notices* notices = nullptr);

// What the runs are measured by in validation, as shown: times 100.
struct Measure {
  const char* name;  // "accuracy", or "CIDEr" of captions
  const char* sign;  // after a number: "%", or nothing
  double top;        // of a chart, not yet times 100; a quarter of it is shown as a whole number
  std::optional<double> chance;  // what guessing gives, not yet times 100
};
Measure measure(const SweepRecord& record);

struct Spread {
  int count = 0;
  double mean = 0, low = 0, high = 0;
};
void add(std::optional<Spread>& spread, double value);

// Figures of a setting over its seeds. A figure that no run has yet is absent.
struct SettingFigures {
  int runs = 0;
  int over = 0;                               // have a result
  int diverged = 0;                           // of those that are over
  std::optional<Spread> best;                 // validation accuracy, 0 to 1
  std::optional<Spread> late;                 // median of the last epochs
  std::optional<Spread> epochs_to_threshold;  // its count: the seeds that reached it
  std::optional<Spread> test;
  std::optional<double> largest_grad_norm;
  double seconds = 0;                       // of all runs
  std::vector<std::optional<Spread>> eval;  // for each of the sweep's eval delays
};

SettingFigures figures(const SweepRecord& record, size_t setting);

}  // namespace hdetach::report
