// Which runs can train side by side.
#pragma once

#include <string>

#include "train/config.h"

namespace hdetach::train {

// Equal for runs of the same shapes on the same device; seeds, scales, learning rates, initial
// weights and the length of training may differ.
std::string group_key(const Config& config);

}  // namespace hdetach::train
