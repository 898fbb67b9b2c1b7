// A run's state as one safetensors file, and its weights as another.
#pragma once

#include <string>

#include "models/sequence_classifier.h"
#include "train/run_state.h"

namespace hdetach::train {

// The weights alone, by the names of nn.LSTM.
std::string weights_file(const SequenceClassifier& model);

// Throws std::runtime_error, with `name` in the message, when the file is damaged or its arrays are
// not those of the model.
void load_weights(SequenceClassifier& model, std::string bytes, const std::string& name);

// Everything from which training goes on to the same bits: weights, moments, generator, progress.
std::string state_file(RunState& run);
void load_state(RunState& run, std::string bytes, const std::string& name);

}  // namespace hdetach::train
