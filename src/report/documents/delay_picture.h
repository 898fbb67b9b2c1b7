// The accuracy of an experiment's best models at longer delays as a picture, the paper's beside
// ours.
#pragma once

#include <string>

#include "report/experiments.h"

namespace hdetach::report {

// Throws as need_delays() of result_tables.h.
std::string delays_svg(const Experiment& experiment);

// What it shows, in words.
std::string delays_words(const Experiment& experiment);

}  // namespace hdetach::report
