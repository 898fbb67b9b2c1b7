// How a measurement is shown.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/bench_case.h"

namespace hdetach::cli {

struct BenchRow {
  BenchCase shape;
  std::string kernel;
  double detach;
  int threads;
  double forward_ms = 0, backward_ms = 0, train_ms = 0;  // medians
  // A training step of each peer; empty when it was not run.
  std::optional<double> libtorch_train_ms = {}, onednn_train_ms = {}, reference_train_ms = {};
  double peak_gflops = 0;    // measured, with the same threads
  double peak_fraction = 0;  // of it that the training step reaches
};

// What every line of the bench's JSON starts with.
nlohmann::ordered_json case_json(const BenchCase& shape, const std::string& kernel, double detach);
std::string json_line(const BenchRow& row);
std::string table_head();
std::string table_line(const BenchRow& row);

// A training step on a GPU. The times are between points of its stream, host_ms is what the host
// needed to queue a step: where that is not well below train_ms, the host is the limit.
struct CudaRow {
  BenchCase shape;
  std::string kernel;
  double detach;
  std::string gpu;
  double forward_ms = 0, backward_ms = 0, train_ms = 0, host_ms = 0;  // medians
  std::optional<double> cudnn_train_ms = {}, cell_loop_train_ms = {};
};

std::string json_line(const CudaRow& row);
std::string cuda_table_head();
std::string table_line(const CudaRow& row);

}  // namespace hdetach::cli
