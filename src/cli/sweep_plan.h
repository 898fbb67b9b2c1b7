// What `hdetach sweep FILE...` is asked for: the experiments, and the runs of all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/sweep_file.h"

namespace hdetach::cli {

struct PlannedSweep {
  std::filesystem::path file;  // as it was named
  train::Sweep sweep;
  std::filesystem::path folder;  // of its runs

  std::string name() const { return file.stem().string(); }
};

struct PlannedRun {
  train::Config config;
  std::filesystem::path folder;
  std::filesystem::path file;        // the first that has it
  std::string name;                  // SETTING/seed-N; FOLDER/SETTING/seed-N among several files
  std::vector<int64_t> eval_delays;  // of every file that has the run
};

struct SweepPlan {
  std::vector<PlannedSweep> sweeps;
  std::vector<PlannedRun> runs;  // a run that several files have is here once
};

// The runs with one of `only` in their name; all where it is empty. A device that is not empty
// replaces that of the files. Throws CLI::ValidationError.
SweepPlan plan_sweeps(const std::vector<std::string>& files, const std::filesystem::path& out,
                      const std::string& device, const std::vector<std::string>& only);

}  // namespace hdetach::cli
