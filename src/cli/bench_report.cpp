#include "cli/bench_report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "cli/version.h"

namespace hdetach::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// How many steps of ours fit into one of the peer's.
template <typename Row>
std::optional<double> speedup(const std::optional<double>& peer_ms, const Row& row) {
  if (!peer_ms) return std::nullopt;
  return *peer_ms / row.train_ms;
}

std::string cell(const std::optional<double>& value, int width, const char* unit = "") {
  if (!value) return fmt::format("{:>{}}", "-", width);
  // Three digits that matter, whatever the size.
  const int decimals = *value < 1 ? 3 : *value < 10 ? 2 : *value < 100 ? 1 : 0;
  return fmt::format("{:>{}}", fmt::format("{:.{}f}{}", *value, decimals, unit), width);
}

}  // namespace

Json case_json(const BenchCase& shape, const std::string& kernel, double detach) {
  Json line;
  line["case"] = shape.name;
  line["T"] = shape.steps;
  line["B"] = shape.batch;
  line["I"] = shape.input;
  line["H"] = shape.hidden;
  line["kernel"] = kernel;
  line["detach"] = detach;
  return line;
}

std::string json_line(const BenchRow& row) {
  Json line = case_json(row.shape, row.kernel, row.detach);
  line["device"] = "cpu";
  line["threads"] = row.threads;
  line["forward_ms"] = row.forward_ms;
  line["backward_ms"] = row.backward_ms;
  line["train_ms"] = row.train_ms;
  line["libtorch_train_ms"] = number_or_null(row.libtorch_train_ms);
  line["onednn_train_ms"] = number_or_null(row.onednn_train_ms);
  line["reference_train_ms"] = number_or_null(row.reference_train_ms);
  line["speedup_libtorch"] = number_or_null(speedup(row.libtorch_train_ms, row));
  line["speedup_onednn"] = number_or_null(speedup(row.onednn_train_ms, row));
  line["peak_fraction"] = row.peak_fraction;
  line["peak_gflops"] = row.peak_gflops;
  line["cpu"] = cpu_model();
  line["commit"] = commit();
  return line.dump();
}

std::string table_head() {
  return fmt::format("{:<9}{:<12}{:>7}{:>10}{:>10}{:>10}{:>11}{:>10}{:>11}{:>12}{:>10}{:>7}\n",
                     "case", "kernel", "detach", "forward", "backward", "train", "libtorch",
                     "onednn", "reference", "x libtorch", "x onednn", "peak");
}

std::string table_line(const BenchRow& row) {
  return fmt::format("{:<9}{:<12}{:>7g}{}{}{}{}{}{}{}{}{:>6.0f}%\n", row.shape.name, row.kernel,
                     row.detach, cell(row.forward_ms, 10), cell(row.backward_ms, 10),
                     cell(row.train_ms, 10), cell(row.libtorch_train_ms, 11),
                     cell(row.onednn_train_ms, 10), cell(row.reference_train_ms, 11),
                     cell(speedup(row.libtorch_train_ms, row), 12, "x"),
                     cell(speedup(row.onednn_train_ms, row), 10, "x"), 100 * row.peak_fraction);
}

std::string json_line(const CudaRow& row) {
  Json line = case_json(row.shape, row.kernel, row.detach);
  line["device"] = "cuda";
  line["forward_ms"] = row.forward_ms;
  line["backward_ms"] = row.backward_ms;
  line["train_ms"] = row.train_ms;
  line["host_ms"] = row.host_ms;
  line["cudnn_train_ms"] = number_or_null(row.cudnn_train_ms);
  line["cudnn_ratio"] = number_or_null(speedup(row.cudnn_train_ms, row));
  line["cell_loop_train_ms"] = number_or_null(row.cell_loop_train_ms);
  line["cell_loop_ratio"] = number_or_null(speedup(row.cell_loop_train_ms, row));
  line["gpu"] = row.gpu;
  line["commit"] = commit();
  return line.dump();
}

std::string cuda_table_head() {
  return fmt::format("{:<12}{:<15}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}{:>10}{:>13}\n", "case",
                     "kernel", "detach", "forward", "backward", "train", "host", "cudnn",
                     "cell loop", "x cudnn", "x cell loop");
}

std::string table_line(const CudaRow& row) {
  return fmt::format("{:<12}{:<15}{:>7g}{}{}{}{}{}{}{}{}\n", row.shape.name, row.kernel, row.detach,
                     cell(row.forward_ms, 10), cell(row.backward_ms, 10), cell(row.train_ms, 10),
                     cell(row.host_ms, 10), cell(row.cudnn_train_ms, 10),
                     cell(row.cell_loop_train_ms, 11),
                     cell(speedup(row.cudnn_train_ms, row), 10, "x"),
                     cell(speedup(row.cell_loop_train_ms, row), 13, "x"));
}

}  // namespace hdetach::cli
