// The runs of an experiment as tables of a document. Each run must have an epoch
// (result_folders.h).
#pragma once

#include <string>

#include "report/experiments.h"

namespace hdetach::report {

int shown_decimals(const train::Sweep& sweep);          // of accuracies and scores times 100
std::string threshold_text(const train::Sweep& sweep);  // "99%"; "50" of captions

std::string settings_markdown(const Experiment& experiment);  // a row for each setting
std::string runs_markdown(const Experiment& experiment);      // a row for each run

// Throws std::runtime_error where the experiment file has no eval-delays.
void need_delays(const train::Sweep& sweep);

// A row for each delay at which the best models were tried, the paper's accuracy beside ours.
// Throws as need_delays().
std::string delays_markdown(const Experiment& experiment);

// The scores of captions on the test images, the paper's and ours. Throws std::runtime_error where
// the runs are of another task.
std::string scores_markdown(const Experiment& experiment);

}  // namespace hdetach::report
