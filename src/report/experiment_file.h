// The experiment files that lie beside runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/notices.h"
#include "train/sweep_file.h"

namespace hdetach::report {

// The files of a folder that may be one, in the order in which they count: `first`, then the one of
// the folder's name, then the others.
std::vector<std::filesystem::path> experiment_files(const std::filesystem::path& folder,
                                                    const std::string& first);

struct ExperimentPlan {
  train::Sweep sweep;  // of the first; its seeds are not those of all
  struct Run {
    std::string setting;
    int64_t seed;
  };
  std::vector<Run> runs;
};

// What they say together: an earlier one has precedence. Empty when there is none. A file that
// cannot be read is left out with a notice; one without settings is no experiment file.
std::optional<ExperimentPlan> read_experiment_files(const std::vector<std::filesystem::path>& files,
                                                    Notices& notices);

}  // namespace hdetach::report
