// The sizes that the bench runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdetach::cli {

struct BenchCase {
  std::string name;
  int64_t steps;   // T
  int64_t batch;   // B
  int64_t input;   // I
  int64_t hidden;  // H
};

// Every case by name. Those of a GPU come last: at larger sizes its kernels change their strategy,
// a CPU's do not.
const std::vector<BenchCase>& bench_cases();

// The cases that run where none is named.
std::vector<BenchCase> default_cases(bool cuda);

}  // namespace hdetach::cli
