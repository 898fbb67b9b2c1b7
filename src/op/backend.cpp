#include "hdetach/backend.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <stdexcept>
#include <string>

#include "op/dispatch.h"

namespace hdetach {
namespace {

std::mutex stats_mutex;
std::string forward_kernel, backward_kernel;  // guarded by stats_mutex, as are these two
at::Tensor backward_products;
bool counting = false;

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
  list.push_back({kReferenceName, "both", true, ""});
  return list;
}

const Kernel* kernel_of_call(Device device, const LstmShape& shape) {
  try {
    return choose_kernel(device, shape);
  } catch (const std::runtime_error& error) {
    TORCH_CHECK(false, "[lstm] ", error.what());
  }
}

std::string active_kernel() {
  const Kernel* kernel = kernel_of_call(Device::kCpu, kAnyShape);
  return kernel ? kernel->name : kReferenceName;
}

std::string cuda_kernel_for(int64_t steps, int64_t batch, int64_t input, int64_t hidden) {
  const Kernel* kernel = kernel_of_call(Device::kCuda, {steps, batch, input, hidden});
  return kernel ? kernel->name : kReferenceName;
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
  forward_kernel = kernel ? kernel : kReferenceName;
}

void record_backward(const char* kernel, const at::Tensor& recurrent_products) {
  std::lock_guard<std::mutex> lock(stats_mutex);
  backward_kernel = kernel ? kernel : kReferenceName;
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
