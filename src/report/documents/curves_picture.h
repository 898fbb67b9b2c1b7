// Validation by epoch as a picture: every run thin, the mean of each setting thick, as far as all
// its runs go.
#pragma once

#include <string>
#include <vector>

#include "report/experiments.h"

namespace hdetach::report {

// The settings of one experiment, drawn in one frame or in several with the same axes. Each run
// must have an epoch.
std::string curves_svg(const std::vector<Experiment>& panels);

// What it shows, in words.
std::string curves_words(const std::vector<Experiment>& panels);

}  // namespace hdetach::report
