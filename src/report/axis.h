// The marks of an axis.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace hdetach::report {

// The distance between marks: 1, 2 or 5 times a power of ten, at most `most` steps in `range`.
inline int64_t tick(int64_t range, int64_t most) {
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t step : {power, 2 * power, 5 * power}) {
      if (range / step <= most) return step;
    }
  }
}

}  // namespace hdetach::report
