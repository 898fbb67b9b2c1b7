// A checksum that tells damaged or exchanged bytes from those that were written. Against accidents,
// not against malice.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "op/random_bits.h"

namespace hdetach {

class Checksum {
 public:
  // Eight bytes at a time, then the number of bytes: pieces cannot run into each other.
  void add(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
      add_word(word);
    }
    add_word(bytes.size());
  }
  template <class Number>
  void add(const std::vector<Number>& numbers) {
    add({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)});
  }
  void add(int64_t number) { add_word(static_cast<uint64_t>(number)); }

  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  // One to one in the value and in the word: no change of a single word goes unnoticed.
  void add_word(uint64_t word) { value_ = mix_bits(value_ + kWeyl + word); }

  uint64_t value_ = 0;
};

}  // namespace hdetach
