// What this machine offers the program.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hdetach::cli {

std::string cpu_model();  // "unknown" where the system does not tell

// The instruction sets that decide which kernels run, and whether this machine has each.
std::vector<std::pair<std::string, bool>> cpu_features();

// The cores this process may use: its affinity mask, cut to the cgroup's CPU quota.
int usable_cores();

// LibTorch's own threads, and those of the BLAS behind it where that keeps a pool of its own, as
// Debian's OpenBLAS does.
struct Threads {
  int torch;
  int blas;
};
void set_threads(Threads threads);

}  // namespace hdetach::cli
