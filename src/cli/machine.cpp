#include "cli/machine.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace hdetach::cli {
namespace {

// The value of the first line `key : value` of /proc/cpuinfo, empty when there is none.
std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

std::string cpu_model() {
  const std::string model = cpuinfo("model name");
  return model.empty() ? "unknown" : model;
}

std::vector<std::pair<std::string, bool>> cpu_features() {
  std::istringstream flags(cpuinfo("flags"));
  std::vector<std::string> present;
  for (std::string flag; flags >> flag;) present.push_back(flag);
  std::vector<std::pair<std::string, bool>> features;
  for (const char* name : {"avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16"}) {
    features.emplace_back(name, std::find(present.begin(), present.end(), name) != present.end());
  }
  return features;
}

int usable_cores() {
  cpu_set_t mask;
  int cores = 1;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cores = CPU_COUNT(&mask);
  // cgroup v2: "quota period" in microseconds; without a quota the first word is "max".
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) {
    cores = std::min(cores, static_cast<int>(std::ceil(quota / period)));
  }
  return std::max(cores, 1);
}

void set_threads(Threads threads) {
  // LibTorch's own setter also rebuilds a pool it keeps beside OpenMP's, and the new threads spin
  // for a while on the cores that the next step needs: once is enough.
  static const bool set = (at::set_num_threads(threads.torch), true);
  static_cast<void>(set);
  omp_set_num_threads(threads.torch);
  using SetThreads = void (*)(int);
  static const auto set_blas_threads =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_blas_threads != nullptr) set_blas_threads(threads.blas);
}

}  // namespace hdetach::cli
