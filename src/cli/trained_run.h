// A run folder as the commands that use its model find it.
#pragma once

#include <string>

#include "train/config.h"

namespace hdetach::cli {

// The run's settings. Throws std::runtime_error where the folder holds no run or no model yet.
train::Config read_trained_run(const std::string& run);

// Sets the device: the one asked for, where that is not empty, else that of the training, else the
// CPU. Throws a usage error where the one asked for is not to be had.
void choose_device(const std::string& asked, train::Config& config);

}  // namespace hdetach::cli
