// hdetach info: what this build is and what this machine can run.
#include <ATen/Context.h>
#include <fmt/core.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "hdetach/backend.h"

namespace hdetach::cli {
namespace {

std::string gpu() {
  if (!at::hasCUDA()) return "none: this LibTorch has no CUDA";
  const size_t count = torch::cuda::device_count();
  if (count == 0) return "none: LibTorch sees no CUDA device";
  return fmt::format("{} CUDA device{}", count, count == 1 ? "" : "s");
}

void print_text() {
  const std::string active = active_kernel();
  fmt::print("hdetach   {}\n", version());
  fmt::print("commit    {}\n", commit());
  fmt::print("LibTorch  {}\n", TORCH_VERSION);
  fmt::print("CPU       {}\n", cpu_model());
  fmt::print("features ");
  for (const auto& [name, present] : cpu_features())
    fmt::print(" {}{}", present ? "" : "no-", name);
  fmt::print("\nthreads   {}\n", usable_cores());
  fmt::print("GPU       {}\n", gpu());
  fmt::print("kernels   best first\n");
  for (const KernelInfo& kernel : kernels()) {
    const char* state = kernel.name == active ? "active" : "available";
    fmt::print("  {:<12}  {}\n", kernel.name,
               kernel.available ? state : "unavailable: " + kernel.reason);
  }
}

void print_json() {
  nlohmann::ordered_json info;
  info["version"] = version();
  info["commit"] = commit();
  info["libtorch"] = TORCH_VERSION;
  info["cpu"] = cpu_model();
  for (const auto& [name, present] : cpu_features()) info["features"][name] = present;
  info["threads"] = usable_cores();
  info["gpu"] = gpu();
  info["active_kernel"] = active_kernel();
  for (const KernelInfo& kernel : kernels()) {
    nlohmann::ordered_json entry = {{"name", kernel.name}, {"available", kernel.available}};
    if (!kernel.available) entry["reason"] = kernel.reason;
    info["kernels"].push_back(std::move(entry));
  }
  fmt::print("{}\n", info.dump());
}

}  // namespace

void register_info(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "info", "Version, CPU features, kernels and the active one, threads, GPU");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] { *json ? print_json() : print_text(); });
}

}  // namespace hdetach::cli
