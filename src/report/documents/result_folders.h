// The runs that a document shows: those of one experiment's folder that have an epoch, of the
// settings that it names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/experiments.h"

namespace hdetach::report {

// Leaves out the epochs after `last`, and the test of a run that has any: its model may be one of
// theirs.
void cut(Experiment& experiment, int64_t last);

class ResultFolders {
 public:
  // In the order of `settings`; empty means every setting with such a run, in the order of the
  // experiment file. Throws std::runtime_error where there is no such run, a setting has none, or
  // the folder holds several experiments. A folder is read once.
  Experiment choose(const std::filesystem::path& folder, const std::vector<std::string>& settings);

  const Notices& notices() const { return notices_; }

 private:
  const Experiment& read(const std::filesystem::path& folder);

  std::map<std::filesystem::path, Experiment> known_;
  Notices notices_;
};

}  // namespace hdetach::report
