#pragma once

#include <algorithm>
#include <vector>

namespace hdetach::report {

inline double median(std::vector<double> values) {  // at least one
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace hdetach::report
