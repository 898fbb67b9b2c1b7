#include "cli/bench_case.h"

namespace hdetach::cli {
namespace {

constexpr int kCpuCases = 5;  // the first of the list

}  // namespace

const std::vector<BenchCase>& bench_cases() {
  static const std::vector<BenchCase> list = {
      {"copy100", 120, 100, 10, 128},      {"copy300", 320, 100, 10, 128},
      {"mnist", 784, 100, 1, 100},         {"caption", 20, 128, 512, 512},
      {"wide", 64, 32, 256, 1024},         {"h160", 100, 100, 10, 160},
      {"h192", 100, 100, 10, 192},         {"h256-b32", 64, 32, 256, 256},
      {"h256-b128", 64, 128, 256, 256},    {"h512-b32", 64, 32, 512, 512},
      {"h512-b128", 64, 128, 512, 512},    {"h1024-b32", 64, 32, 1024, 1024},
      {"h1024-b128", 64, 128, 1024, 1024},
  };
  return list;
}

std::vector<BenchCase> default_cases(bool cuda) {
  const std::vector<BenchCase>& all = bench_cases();
  return cuda ? all : std::vector<BenchCase>(all.begin(), all.begin() + kCpuCases);
}

}  // namespace hdetach::cli
