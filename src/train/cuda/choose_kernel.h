// The LSTM kernel that the trainer uses for a shape.
#pragma once

#include <stdexcept>

#include "kernels/kernel.h"

namespace hdetach::train {

inline const Kernel& choose_cuda_kernel(const LstmShape& shape) {
  const Kernel* const kernel = choose_kernel(Device::kCuda, shape);
  if (kernel == nullptr) {
    throw std::runtime_error("the CUDA trainer has no reference; unset HDETACH_KERNEL");
  }
  return *kernel;
}

}  // namespace hdetach::train
