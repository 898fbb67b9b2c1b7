#include "hdetach/backend.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <mutex>

#include "op/dispatch.h"

namespace hdetach {
namespace {

constexpr const char* kReference = "reference";

std::mutex stats_mutex;
CallStats forward_stats, backward_stats;  // guarded by stats_mutex

std::string kernel_names() {
  std::string names;
  for (const KernelInfo& kernel : kernels()) {
    if (!names.empty()) names += ", ";
    names += kernel.name;
  }
  return names;
}

}  // namespace

std::vector<KernelInfo> kernels() {
  std::vector<KernelInfo> list;
  const KernelTable table = kernel_table();
  for (int i = 0; i < table.count; ++i) {
    const char* reason = table.kernels[i]->unavailable();
    list.push_back({table.kernels[i]->name, reason == nullptr, reason ? reason : ""});
  }
  list.push_back({kReference, true, ""});
  return list;
}

const Kernel* choose_kernel() {
  const char* forced = std::getenv("HDETACH_KERNEL");
  if (forced == nullptr || *forced == '\0') return best_kernel();
  if (std::string(forced) == kReference) return nullptr;
  const Kernel* kernel = find_kernel(forced);
  TORCH_CHECK(kernel != nullptr, "[lstm] HDETACH_KERNEL is '", forced,
              "', which names no kernel; the kernels are: ", kernel_names(), ".");
  const char* reason = kernel->unavailable();
  TORCH_CHECK(reason == nullptr, "[lstm] HDETACH_KERNEL is '", forced,
              "', which cannot run here: ", reason, ".");
  return kernel;
}

std::string active_kernel() {
  const Kernel* kernel = choose_kernel();
  return kernel ? kernel->name : kReference;
}

void record_forward(const char* kernel) {
  std::lock_guard<std::mutex> lock(stats_mutex);
  forward_stats = {kernel ? kernel : kReference, 0};
}

void record_backward(const char* kernel, int64_t recurrent_products) {
  std::lock_guard<std::mutex> lock(stats_mutex);
  backward_stats = {kernel ? kernel : kReference, recurrent_products};
}

CallStats last_forward() {
  std::lock_guard<std::mutex> lock(stats_mutex);
  return forward_stats;
}

CallStats last_backward() {
  std::lock_guard<std::mutex> lock(stats_mutex);
  return backward_stats;
}

}  // namespace hdetach
