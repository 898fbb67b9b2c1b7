// Damaged copies of good inputs, the same in every run.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
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

// Thousands of damaged inputs: each is read or refused with a message that starts with `prefix`,
// and there are some of both. `message_of` gives "no error" for what was read.
inline void expect_read_or_refused(const std::function<std::string(Mutator&, int)>& damaged,
                                   const std::function<std::string(std::string)>& message_of,
                                   const std::string& prefix) {
  Mutator mutate;
  int read = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string what = message_of(damaged(mutate, i));
    const bool is_read = what == "no error";
    EXPECT_TRUE(is_read || what.rfind(prefix, 0) == 0) << what;
    ++(is_read ? read : refused);
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace hdetach
