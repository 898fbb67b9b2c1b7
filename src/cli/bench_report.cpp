#include "cli/bench_report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "cli/version.h"

namespace hdetach::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::optional<double> speedup(const std::optional<double>& peer_ms, const BenchRow& row) {
  if (!peer_ms) return std::nullopt;
  return *peer_ms / row.train_ms;
}

std::string cell(const std::optional<double>& value, int width, const char* unit = "") {
  if (!value) return fmt::format("{:>{}}", "-", width);
  // Three digits that matter, whatever the size.
  const int decimals = *value < 10 ? 2 : *value < 100 ? 1 : 0;
  return fmt::format("{:>{}}", fmt::format("{:.{}f}{}", *value, decimals, unit), width);
}

}  // namespace

Json case_json(const BenchCase& shape, const std::string& kernel, double detach, int threads) {
  Json line;
  line["case"] = shape.name;
  line["T"] = shape.steps;
  line["B"] = shape.batch;
  line["I"] = shape.input;
  line["H"] = shape.hidden;
  line["kernel"] = kernel;
  line["detach"] = detach;
  line["threads"] = threads;
  return line;
}

std::string json_line(const BenchRow& row) {
  Json line = case_json(row.shape, row.kernel, row.detach, row.threads);
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

}  // namespace hdetach::cli
