// A run's data, as its configuration describes it.
#pragma once

#include <memory>

#include "tasks/sequence_set.h"
#include "train/config.h"

namespace hdetach::train {

// Throws ConfigError where sizes do not fit the data, and what reading the files throws.
tasks::Task make_task(const Config& config);

// Fresh sequences of another delay, for a copy run: not those it was trained or validated on.
std::shared_ptr<const tasks::SequenceSet> transfer_set(const Config& config, int64_t delay,
                                                       int64_t size);

}  // namespace hdetach::train
