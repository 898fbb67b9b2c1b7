// The table of kernels, best first.
#include <cstring>

#include "kernels/cpu/kernels.h"
#ifdef HDETACH_WITH_CUDA
#include "kernels/cuda/kernels.h"
#endif
#include "kernels/kernel.h"

namespace hdetach {
namespace {

const Kernel* const kTable[] = {
#if defined(__x86_64__)
    // AMX after AVX-512: six bf16 products make one float product, and what that saves on an
    // Emerald
    // Rapids the splitting spends (docs/kernels.md).
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

const Kernel* find_kernel(const char* name) {
  for (const Kernel* kernel : kTable) {
    if (std::strcmp(kernel->name, name) == 0) return kernel;
  }
  return added != nullptr && std::strcmp(added->name, name) == 0 ? added : nullptr;
}

const Kernel* best_kernel(Device device, const LstmShape& shape) {
  for (const Kernel* kernel : kTable) {
    if (kernel->device == device && kernel->unavailable() == nullptr &&
        kernel->unsuited(shape) == nullptr) {
      return kernel;
    }
  }
  return nullptr;
}

}  // namespace hdetach
