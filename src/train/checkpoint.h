// A run's state as one safetensors file, and its weights as another.
#pragma once

#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "models/named_tensor.h"
#include "train/run_state.h"

namespace hdetach::train {

// The weights alone, by their names, and notes.
std::string weights_file(const std::vector<NamedTensor>& parameters,
                         safetensors::Metadata notes = {});

// Throws std::runtime_error, with `name` in the message, when the file is damaged or its arrays are
// not the parameters.
void load_weights(const std::vector<NamedTensor>& parameters, std::string bytes,
                  const std::string& name);

// Everything from which training goes on to the same bits: weights, moments, generator, progress.
// What else is to be remembered goes in as `notes` and comes back; those of an earlier version's
// file are empty.
std::string state_file(RunState& run, safetensors::Metadata notes);
// Throws likewise, and where the counters make no sense for the run or its data is not that of the
// state.
safetensors::Metadata load_state(RunState& run, std::string bytes, const std::string& name);

}  // namespace hdetach::train
