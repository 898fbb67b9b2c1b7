#include "cli/sweep_lock.h"

#include <fmt/core.h>

#include <filesystem>
#include <set>
#include <stdexcept>

namespace hdetach::cli {

std::vector<train::FolderLock> lock_folders(const SweepPlan& plan) {
  std::vector<train::FolderLock> locks;
  std::set<std::filesystem::path> known;  // files may share a folder, which has one lock
  for (const PlannedSweep& sweep : plan.sweeps) {
    if (!known.insert(std::filesystem::canonical(sweep.folder)).second) continue;
    // No setting has a name that starts with a dot.
    locks.emplace_back(sweep.folder / ".lock");
    if (!locks.back().is_held()) {
      throw std::runtime_error(
          fmt::format("another sweep works on {}; wait for it or end it, or name another place by "
                      "--out",
                      sweep.folder.string()));
    }
  }
  return locks;
}

}  // namespace hdetach::cli
