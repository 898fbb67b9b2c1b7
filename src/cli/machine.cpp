#include "cli/machine.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <omp.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "cli/output.h"

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

CLI::Option* add_threads(CLI::App& command, int& threads, const std::string& help) {
  const auto take = [&threads](const int& wanted) {
    threads = std::min(wanted, usable_cores());
    if (threads == wanted) return;
    print(stderr,
          "hdetach: --threads {} is more than the {} {} that this process may use; "
          "going on with --threads {}\n",
          wanted, threads, threads == 1 ? "core" : "cores", threads);
  };
  return command.add_option_function<int>("--threads", take, help)->check(CLI::Range(1, 1024));
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
