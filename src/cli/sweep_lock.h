// One sweep at a time works on a folder. --dry-run and readers take no lock.
#pragma once

#include <vector>

#include "cli/sweep_plan.h"
#include "train/folder_lock.h"

namespace hdetach::cli {

// Of each folder of the plan, which must be there. Throws std::runtime_error where another sweep
// has one. Children do not have the locks: those of a sweep that was killed are free at once.
std::vector<train::FolderLock> lock_folders(const SweepPlan& plan);

}  // namespace hdetach::cli
