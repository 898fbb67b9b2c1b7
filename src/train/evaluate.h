// Loss and accuracy of a model on a set of sequences, in memory that does not grow with their
// length.
#pragma once

#include <functional>
#include <optional>

#include "models/sequence_classifier.h"
#include "tasks/sequence_set.h"
#include "train/outcome.h"

namespace hdetach::train {

// `go_on(share)` is asked now and then with the part done, 0 to 1; false gives up, and the result
// is empty.
std::optional<Score> evaluate(SequenceClassifier& model, const tasks::SequenceSet& set,
                              const std::function<bool(double)>& go_on);

}  // namespace hdetach::train
