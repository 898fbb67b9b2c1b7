// The check of flags that are real numbers. CLI::Range lets NaN through, which is neither below the
// least nor above the most.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>

namespace hdetach::cli {

inline CLI::Validator number_in(double least, double most) {
  const auto check = [least, most](std::string& text) {
    double value = 0;
    const bool inside =
        CLI::detail::lexical_cast(text, value) && value >= least && value <= most;  // NaN is not
    return inside ? std::string()
                  : fmt::format("{} is not a number in {:g} to {:g}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

}  // namespace hdetach::cli
