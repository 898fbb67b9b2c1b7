// The measure of a sweep against epochs in characters, every run of a sweep in one picture.
#pragma once

#include <string>

#include "report/sweep_record.h"

namespace hdetach::report {

// At most `columns` wide (80 and more are put to use), ending with a newline; empty when no run has
// an epoch. A setting is told by its mark, and by its colour as well where `colour` says so.
std::string terminal_plot(const SweepRecord& record, int columns, bool colour);

}  // namespace hdetach::report
