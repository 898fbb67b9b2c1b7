// Files that know whether they are whole: safetensors, whose metadata has a checksum over all the
// other bytes; texts, whose first line is a comment that says so and whose last one has it; JSON
// objects, whose last member it is. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "formats/safetensors.h"

namespace hdetach::train {

std::string sealed(const std::vector<safetensors::View>& arrays, safetensors::Metadata metadata);

// parse(), and the checksum compared: throws std::runtime_error, with `name` in the message, where
// it is another. A file without one, as earlier versions wrote them, passes.
safetensors::File parse_sealed(std::string bytes, const std::string& name);

// For formats in which a line that begins with # means nothing. The check throws and passes
// likewise, and returns whether there is a checksum.
std::string sealed_text(const std::string& text);
bool is_sealed_text(const std::string& text);
bool check_sealed_text(const std::string& text, const std::string& name);

// For an object of at least one member.
std::string sealed_json(const std::string& object);
bool check_sealed_json(const std::string& text, const std::string& name);

}  // namespace hdetach::train
