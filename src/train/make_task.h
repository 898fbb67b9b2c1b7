// A run's data, as its configuration describes it.
#pragma once

#include <memory>
#include <variant>

#include "tasks/caption_set.h"
#include "tasks/sequence_set.h"
#include "train/config.h"

namespace hdetach::train {

// Throws ConfigError where sizes do not fit the data, and what reading the files throws.
tasks::Task make_task(const Config& config);  // of copy or mnist

using TaskData = std::variant<tasks::Task, std::shared_ptr<const tasks::CaptionData>>;
TaskData make_data(const Config& config);  // of any task; throws likewise

// Images of a captioning run for its trained model: those of the split that the run has, or the
// first `most` of them where that is not 0.
tasks::CaptionSplit make_caption_split(const Config& config, tasks::Split split, int64_t most);

// Fresh sequences of another delay, for a copy run: not those it was trained or validated on.
std::shared_ptr<const tasks::SequenceSet> transfer_set(const Config& config, int64_t delay,
                                                       int64_t size);

}  // namespace hdetach::train
