// What the bench of either device is asked, and how it says how far it is.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_case.h"
#include "cli/machine.h"

namespace hdetach::cli {

struct BenchOptions {
  std::vector<std::string> cases;  // names out of bench_cases(); empty means the default ones
  std::string shape;               // "T,B,I,H", instead of cases
  std::string device = "cpu";      // or cuda
  std::vector<double> detach = {0, 0.25, 0.5, 1};
  std::vector<std::string> kernels;  // empty means the one that the op would choose
  int threads = usable_cores();      // of the CPU
  int repeats = 7;
  bool no_peers = false;
  bool trainer = false;
  int replicas = 1;  // of the CUDA trainer
  bool json = false;

  bool cuda() const { return device == "cuda"; }
};

// On stderr, silent when that goes elsewhere than to a terminal; "" clears the line.
void show_progress(const std::string& text);

// Check the kernels, time them against their peers, print one line a row.
void run_cpu_bench(const BenchOptions& options, const std::vector<BenchCase>& cases);
void run_cuda_bench(const BenchOptions& options, const std::vector<BenchCase>& cases);

// Time the trainer's whole update, on the cases that are one of its tasks.
void run_cpu_trainer_bench(const BenchOptions& options, const std::vector<BenchCase>& cases);
void run_cuda_trainer_bench(const BenchOptions& options, const std::vector<BenchCase>& cases);

}  // namespace hdetach::cli
