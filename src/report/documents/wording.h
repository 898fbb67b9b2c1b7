// Numbers and lists as the documents write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/sweep_record.h"

namespace hdetach::report {

std::string with_commas(int64_t value);                         // "2,385"
std::string with_seeds(const std::string& name, size_t seeds);  // "plain (5 seeds)"
std::string comma_list(const std::vector<std::string>& names);
std::string norm_text(std::optional<double> norm);     // "0.71", "64", "5e27", "not finite", "-"
std::string times_100(double part, int decimals);      // "98.5"
std::string signed_points(double part, int decimals);  // "+27.9", times 100 as well

// "93.1 (85.7 to 99.6)", one value alone as it is, "-" for none. `text` is one of the two above.
std::string spread_text(const std::optional<Spread>& spread, int decimals,
                        std::string (*text)(double part, int decimals) = times_100);

}  // namespace hdetach::report
