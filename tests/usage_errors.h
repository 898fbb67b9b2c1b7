// Wrong command lines: exit code 2, nothing on stdout, and a first line that names flag and value.
#pragma once

#include <string>
#include <vector>

#include "tests/program.h"

namespace hdetach::program {

struct UsageError {
  const char *arguments, *flag, *value;
};

inline void expect_usage_errors(const std::vector<UsageError>& cases) {
  for (const UsageError& c : cases) {
    const Result result = run(c.arguments);
    EXPECT_EQ(result.exit_code, 2) << c.arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << c.arguments;
    const std::string message = result.err.substr(0, result.err.find('\n'));
    EXPECT_TRUE(contains(message, c.flag)) << c.arguments << ": " << message;
    EXPECT_TRUE(contains(message, c.value)) << c.arguments << ": " << message;
  }
}

}  // namespace hdetach::program
