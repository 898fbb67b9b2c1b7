// The characters of TOML: what its reader and its writers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hdetach::toml {

// Bytes of the UTF-8 character that `text` starts with; 0 where it starts with none.
size_t utf8_length(std::string_view text);

void append_utf8(uint32_t code, std::string& out);

// The start of `text` as a message repeats it: of bounded length, no control characters.
std::string excerpt(std::string_view text);

// The characters that an escape names by a letter, and at the same place the letters.
constexpr std::string_view kEscaped = "\b\t\n\f\r\"\\";
constexpr std::string_view kEscapes = "btnfr\"\\";

}  // namespace hdetach::toml
