// Names in the order in which people count: seed-2 before seed-10, detach-0.25 before detach-0.5.
#pragma once

#include <cstdlib>
#include <string>

namespace hdetach::report {

inline bool natural_less(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // The end of the number that begins at `i`, with at most one point in it.
  const auto number_end = [&](const std::string& text, size_t i) {
    bool point = false;
    for (; i < text.size(); ++i) {
      const bool begins_fraction =
          text[i] == '.' && !point && i + 1 < text.size() && is_digit(text[i + 1]);
      if (!is_digit(text[i]) && !begins_fraction) break;
      point |= begins_fraction;
    }
    return i;
  };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const size_t a_end = number_end(a, i), b_end = number_end(b, j);
      const double x = std::strtod(a.substr(i, a_end - i).c_str(), nullptr);
      const double y = std::strtod(b.substr(j, b_end - j).c_str(), nullptr);
      if (x != y) return x < y;
      i = a_end;
      j = b_end;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // "01" and "1" are the same number, but not the same name
}

}  // namespace hdetach::report
