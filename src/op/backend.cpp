#include "hdetach/backend.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "op/dispatch.h"

namespace hdetach {
namespace {

constexpr const char* kReference = "reference";

std::mutex stats_mutex;
std::string forward_kernel, backward_kernel;  // guarded by stats_mutex, as are these two
at::Tensor backward_products;
bool counting = false;

constexpr LstmShape kAnyShape = {1, 1, 1, 1};

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
    const Kernel& kernel = *table.kernels[i];
    const char* reason = kernel.unavailable();
    list.push_back({kernel.name, kernel.device == Device::kCpu ? "cpu" : "cuda", reason == nullptr,
                    reason ? reason : ""});
  }
  list.push_back({kReference, "both", true, ""});
  return list;
}

const Kernel* choose_kernel(Device device, const LstmShape& shape) {
  const char* forced = std::getenv("HDETACH_KERNEL");
  if (forced == nullptr || *forced == '\0') return best_kernel(device, shape);
  if (std::string(forced) == kReference) return nullptr;
  const Kernel* kernel = find_kernel(forced);
  TORCH_CHECK(kernel != nullptr, "[lstm] HDETACH_KERNEL is '", forced,
              "', which names no kernel; the kernels are: ", kernel_names(), ".");
  if (kernel->device != device) return best_kernel(device, shape);
  const char* reason = kernel->unavailable();
  TORCH_CHECK(reason == nullptr, "[lstm] HDETACH_KERNEL is '", forced,
              "', which cannot run here: ", reason, ".");
  reason = kernel->unsuited(shape);
  TORCH_CHECK(reason == nullptr, "[lstm] HDETACH_KERNEL is '", forced,
              "', which does not take H=", shape.hidden, ": ", reason, ".");
  return kernel;
}

std::string active_kernel() {
  const Kernel* kernel = choose_kernel(Device::kCpu, kAnyShape);
  return kernel ? kernel->name : kReference;
}

std::string cuda_kernel_for(int64_t steps, int64_t batch, int64_t input, int64_t hidden) {
  const Kernel* kernel = choose_kernel(Device::kCuda, {steps, batch, input, hidden});
  return kernel ? kernel->name : kReference;
}

void count_products(bool on) {
  std::lock_guard<std::mutex> lock(stats_mutex);
  counting = on;
}

bool counting_products() {
  std::lock_guard<std::mutex> lock(stats_mutex);
  return counting;
}

void record_forward(const char* kernel) {
  std::lock_guard<std::mutex> lock(stats_mutex);
  forward_kernel = kernel ? kernel : kReference;
}

void record_backward(const char* kernel, const at::Tensor& recurrent_products) {
  std::lock_guard<std::mutex> lock(stats_mutex);
  backward_kernel = kernel ? kernel : kReference;
  backward_products = recurrent_products;
}

CallStats last_forward() {
  std::lock_guard<std::mutex> lock(stats_mutex);
  return {forward_kernel, 0};
}

CallStats last_backward() {
  std::lock_guard<std::mutex> lock(stats_mutex);
  return {backward_kernel, backward_products.defined() ? backward_products.item<int64_t>() : -1};
}

}  // namespace hdetach
