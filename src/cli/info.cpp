// hdetach info: what this build is and what this machine can run.
#include <ATen/Context.h>
#include <fmt/core.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/machine.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "hdetach/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/kernel.h"

namespace hdetach::cli {
namespace {

std::string gpu() {
  if (cuda_present()) return cuda_device_name();
  if (!at::hasCUDA()) return "none: this LibTorch has no CUDA";
  const size_t count = torch::cuda::device_count();
  if (count == 0) return "none: LibTorch sees no CUDA device";
  return fmt::format("{} CUDA device{}, but this build has no CUDA kernels", count,
                     count == 1 ? "" : "s");
}

// Which kernel CUDA tensors get, by hidden size: read off the table of kernels, size by size.
struct HiddenSizes {
  int64_t from;
  int64_t to;  // 0: no end
  std::string kernel;
};

constexpr LstmShape kTypical{/*steps=*/100, /*batch=*/100, /*input=*/10, /*hidden=*/0};

std::vector<HiddenSizes> cuda_kernels_by_size() {
  constexpr int64_t kMost = 2048;  // no rule changes beyond
  std::vector<HiddenSizes> list;
  for (int64_t hidden = 1; cuda_present() && hidden <= kMost; ++hidden) {
    LstmShape shape = kTypical;
    shape.hidden = hidden;
    const Kernel* kernel = best_kernel(Device::kCuda, shape);
    const std::string name = kernel ? kernel->name : "reference";
    if (list.empty() || list.back().kernel != name) list.push_back({hidden, hidden, name});
    list.back().to = hidden;
  }
  if (!list.empty()) list.back().to = 0;
  return list;
}

void print_text() {
  const std::string active = active_kernel();
  print("hdetach   {}\n", version());
  print("commit    {}\n", commit());
  print("LibTorch  {}\n", TORCH_VERSION);
  print("CPU       {}\n", cpu_model());
  print("features ");
  for (const auto& [name, present] : cpu_features()) print(" {}{}", present ? "" : "no-", name);
  print("\nthreads   {}\n", usable_cores());
  print("GPU       {}\n", gpu());
  print("kernels   best first\n");
  for (const KernelInfo& kernel : kernels()) {
    const char* state = kernel.name == active ? "active" : "available";
    print("  {:<13}  {:<4}  {}\n", kernel.name, kernel.device,
          kernel.available ? state : "unavailable: " + kernel.reason);
  }
  const std::vector<HiddenSizes> sizes = cuda_kernels_by_size();
  if (sizes.empty()) return;
  print(
      "on CUDA   float32 tensors by hidden size, at batch {} and {} inputs; float64 ones get "
      "the reference\n",
      kTypical.batch, kTypical.input);
  for (const HiddenSizes& size : sizes) {
    print(
        "  {:<13}  {}\n", size.kernel,
        size.to ? fmt::format("{} to {}", size.from, size.to) : fmt::format("from {}", size.from));
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
    nlohmann::ordered_json entry = {
        {"name", kernel.name}, {"device", kernel.device}, {"available", kernel.available}};
    if (!kernel.available) entry["reason"] = kernel.reason;
    info["kernels"].push_back(std::move(entry));
  }
  for (const HiddenSizes& size : cuda_kernels_by_size()) {
    nlohmann::ordered_json entry = {{"kernel", size.kernel}, {"hidden_from", size.from}};
    if (size.to) entry["hidden_to"] = size.to;
    info["cuda_kernels_by_size"].push_back(std::move(entry));
  }
  print("{}\n", info.dump());
}

}  // namespace

void register_info(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "info", "Version, CPU features, GPU, kernels and which tensors get which, threads");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] { *json ? print_json() : print_text(); });
}

}  // namespace hdetach::cli
