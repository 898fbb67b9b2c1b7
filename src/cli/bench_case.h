#pragma once

#include <cstdint>
#include <string>

namespace hdetach::cli {

struct BenchCase {
  std::string name;
  int64_t steps;   // T
  int64_t batch;   // B
  int64_t input;   // I
  int64_t hidden;  // H
};

}  // namespace hdetach::cli
