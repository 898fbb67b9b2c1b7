// A sweep as one HTML page that needs nothing else: the curves, the table, every run, the settings.
#pragma once

#include <string>

#include "report/sweep_record.h"

namespace hdetach::report {

// `about`: lines of text below the title, such as the command and the program's version.
std::string page(const SweepRecord& record, const std::vector<std::string>& about);

}  // namespace hdetach::report
