// The LSTM kernel of a shape on the GPU, or the one that HDETACH_KERNEL names.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels/kernel.h"

namespace hdetach::train {

inline const Kernel& choose_cuda_kernel(const LstmShape& shape) {
  const char* const forced = std::getenv("HDETACH_KERNEL");
  if (forced == nullptr || *forced == '\0') {
    const Kernel* const kernel = best_kernel(Device::kCuda, shape);
    if (kernel == nullptr) throw std::runtime_error("no CUDA kernel takes these sizes");
    return *kernel;
  }
  const std::string name = std::string("HDETACH_KERNEL is '") + forced + "', which ";
  const Kernel* const kernel = find_kernel(forced);
  if (kernel == nullptr || kernel->device != Device::kCuda) {
    throw std::runtime_error(name + "is no CUDA kernel; hdetach info lists them");
  }
  if (const char* reason = kernel->unavailable()) {
    throw std::runtime_error(name + "cannot run here: " + reason);
  }
  if (const char* reason = kernel->unsuited(shape)) {
    throw std::runtime_error(name + "does not take these sizes: " + reason);
  }
  return *kernel;
}

}  // namespace hdetach::train
