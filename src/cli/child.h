// Other programs, run to their end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hdetach::cli {

struct ChildResult {
  int status;          // exit code; 128 + the signal where one ended it
  std::string output;  // stdout and stderr as they came
};

// Runs arguments[0], found on PATH, in `folder`, without a shell and with nothing to read. Throws
// std::runtime_error where it cannot be started.
ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder);

}  // namespace hdetach::cli
