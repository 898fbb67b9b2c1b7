// The table at the end of a sweep: one row for each setting, the paper's numbers beside ours.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/sweep_record.h"

namespace hdetach::report {

std::string duration(double seconds);         // "35 s", "4 min 10 s", "2 h 13 min", "3 d 4 h"
std::string percent(double accuracy);         // "98.5"
std::string percent(const Spread& accuracy);  // "98.5 (98.1-98.7)"
std::string short_number(double value);       // "0.71", "12", "3.2e+19", "inf"

// Ends with a newline. Fits 100 columns with names of up to 16 letters.
std::string summary_text(const SweepRecord& record);

// The same as cells, for a page: the paper's text, the delays and diverged runs are columns.
struct SummaryTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // one for each setting
};
SummaryTable summary_table(const SweepRecord& record);

nlohmann::ordered_json summary_json(const SweepRecord& record);

}  // namespace hdetach::report
