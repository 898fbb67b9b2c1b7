// Files that know whether they are whole: safetensors, whose metadata has a checksum over all the
// other bytes, and texts, whose first line is a comment that says so and whose last one has it.
// Torch-free.
#pragma once

#include <string>
#include <vector>

#include "formats/safetensors.h"

namespace hdetach::train {

std::string sealed(const std::vector<safetensors::View>& arrays, safetensors::Metadata metadata);

// parse(), and the checksum compared: throws std::runtime_error, with `name` in the message, where
// it is another. A file without one, as earlier versions wrote them, passes.
safetensors::File parse_sealed(std::string bytes, const std::string& name);

// For formats in which a line that begins with # means nothing.
std::string sealed_text(const std::string& text);
void check_sealed_text(const std::string& text,
                       const std::string& name);  // throws, passes likewise

}  // namespace hdetach::train
