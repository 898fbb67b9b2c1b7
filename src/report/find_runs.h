// The run folders below a folder: those that hold a file of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/notices.h"

namespace hdetach::report {

struct FoundRun {
  std::filesystem::path folder;      // as it was named, and the way below that
  std::string name;                  // "plain/seed-1", or the folder's own name
  std::string setting;               // "plain", or the folder's own name
  std::optional<int64_t> seed;       // of a folder seed-N
  std::filesystem::path experiment;  // the folder above the setting, absolute
  bool whole = false;                // the experiment's folder was searched too
};

// Follows links, but visits no folder twice. Folders that are missing, not readable, hidden or more
// than a few levels down are left out, with a notice where that may surprise.
std::vector<FoundRun> find_runs(const std::vector<std::filesystem::path>& folders,
                                Notices& notices);

}  // namespace hdetach::report
