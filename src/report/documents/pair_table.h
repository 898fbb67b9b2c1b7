// Settings compared seed by seed: the same seed has the same data, initial weights and minibatches
// in every setting.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/experiments.h"

namespace hdetach::report {

// A row for each pair {A, B}: B against A over the seeds that both have. Each run must have an
// epoch, and each setting be in the experiment. Throws std::runtime_error where they share no seed.
std::string pairs_markdown(const Experiment& experiment,
                           const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace hdetach::report
