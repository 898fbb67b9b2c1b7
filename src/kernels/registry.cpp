// The table of kernels, best first.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cpu/kernels.h"
#ifdef HDETACH_WITH_CUDA
#include "kernels/cuda/kernels.h"
#endif
#include "kernels/kernel.h"
#include "kernels/shape_text.h"

namespace hdetach {
namespace {

const Kernel* const kTable[] = {
#if defined(__x86_64__)
    // AMX after AVX-512: six bf16 products make one float product, and what that saves on an
    // Emerald Rapids the splitting spends (docs/kernels.md).
    &kCpuAvx512,    &kCpuAmx,    &kCpuAvx2,
#endif
    &kCpuGeneric,
#ifdef HDETACH_WITH_CUDA
    &kCudaResident, &kCudaSteps,
#endif
};

constexpr int kCount = sizeof(kTable) / sizeof(kTable[0]);

const Kernel* added = nullptr;

}  // namespace

KernelTable kernel_table() { return {kTable, kCount}; }

void add_kernel(const Kernel* kernel) { added = kernel; }

const char* refusal(const Kernel& kernel, const LstmShape& shape) {
  const char* const reason = kernel.unavailable();
  return reason != nullptr ? reason : kernel.unsuited(shape);
}

const Kernel* find_kernel(const char* name) {
  for (const Kernel* kernel : kTable) {
    if (std::strcmp(kernel->name, name) == 0) return kernel;
  }
  return added != nullptr && std::strcmp(added->name, name) == 0 ? added : nullptr;
}

const Kernel* best_kernel(Device device, const LstmShape& shape) {
  for (const Kernel* kernel : kTable) {
    if (kernel->device == device && refusal(*kernel, shape) == nullptr) return kernel;
  }
  return nullptr;
}

const Kernel* choose_kernel(Device device, const LstmShape& shape) {
  const char* const forced = std::getenv("HDETACH_KERNEL");
  if (forced == nullptr || *forced == '\0') return best_kernel(device, shape);
  if (std::strcmp(forced, kReferenceName) == 0) return nullptr;
  const std::string named = std::string("HDETACH_KERNEL is '") + forced + "', which ";
  const Kernel* const kernel = find_kernel(forced);
  if (kernel == nullptr) {
    std::string names;
    for (const Kernel* known : kTable) names += std::string(known->name) + ", ";
    throw std::runtime_error(named + "names no kernel; the kernels are: " + names + kReferenceName +
                             ".");
  }
  if (kernel->device != device) return best_kernel(device, shape);
  if (const char* reason = kernel->unavailable()) {
    throw std::runtime_error(named + "cannot run here: " + reason + ".");
  }
  if (const char* reason = kernel->unsuited(shape)) {
    throw std::runtime_error(named + "does not take " + to_text(shape) + ": " + reason + ".");
  }
  return kernel;
}

}  // namespace hdetach
