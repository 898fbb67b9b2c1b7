// Damaged copies of good inputs, the same in every run.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace hdetach {

class Mutator {
 public:
  std::string operator()(std::string input) {
    for (uint64_t changes = 1 + below(4); changes > 0; --changes) change(input);
    return input;
  }

 private:
  uint64_t below(uint64_t end) { return generator_() % end; }

  void change(std::string& input) {
    const size_t at = below(input.size() + 1), length = below(16);
    switch (below(5)) {
      case 0:
        if (at < input.size()) input[at] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        input.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(below(input.size() + 1), input.substr(at, length));
        break;
      default:
        if (below(8) == 0) input.resize(at);
    }
  }

  std::mt19937_64 generator_{1};
};

}  // namespace hdetach
