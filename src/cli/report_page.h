// The page of some run folders, as `report` and `sweep` make it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/experiments.h"

namespace hdetach::cli {

// The data of the page, with the command that asks for it and this machine in its heading.
std::string report_data(const report::Experiments& experiments, const std::string& command,
                        bool watching);

// Throws std::runtime_error where this program has no page: why, and how to get it.
void need_page();

// Throws std::runtime_error, which names the folders, where there is no run.
void need_runs(const report::Experiments& experiments,
               const std::vector<std::filesystem::path>& folders);

// On stderr, the first few; the page has more.
void print_notices(const report::Notices& notices);

}  // namespace hdetach::cli
