// evaluate(), on the device that a configuration names.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "models/sequence_classifier.h"
#include "tasks/sequence_set.h"
#include "train/config.h"
#include "train/outcome.h"

namespace hdetach::train {

std::optional<Score> evaluate_on(const Config& config, SequenceClassifier& model,
                                 const std::shared_ptr<const tasks::SequenceSet>& set,
                                 const std::function<bool(double)>& go_on);

}  // namespace hdetach::train
