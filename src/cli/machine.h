// What this machine offers the program.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hdetach::cli {

std::string cpu_model();  // "unknown" where the system does not tell

// The instruction sets that decide which kernels run, and whether this machine has each.
std::vector<std::pair<std::string, bool>> cpu_features();

// The cores this process may use: its affinity mask, cut to the cgroup's CPU quota.
int usable_cores();

// The flag --threads of a command. More threads than usable_cores() only wait for each other: that
// many are taken instead, and a notice says so, since files and scripts come from other machines.
CLI::Option* add_threads(CLI::App& command, int& threads, const std::string& help);

// LibTorch's own threads, and those of the BLAS behind it where that keeps a pool of its own, as
// Debian's OpenBLAS does.
struct Threads {
  int torch;
  int blas;
};
void set_threads(Threads threads);

}  // namespace hdetach::cli
