// The LSTM kernel that the trainer uses for a shape.
#pragma once

#include <stdexcept>

#include "kernels/cuda/kernels.h"
#include "kernels/shape_text.h"

namespace hdetach::train {

inline const Kernel& choose_cuda_kernel(const LstmShape& shape) {
  const Kernel* const kernel = choose_kernel(Device::kCuda, shape);
  if (kernel != nullptr) return *kernel;
  // cuda-steps takes the most.
  const char* const reason = refusal(kCudaSteps, shape);
  throw std::runtime_error(reason == nullptr
                               ? "the CUDA trainer has no reference; unset HDETACH_KERNEL"
                               : "no CUDA kernel takes " + to_text(shape) + ": " + reason);
}

}  // namespace hdetach::train
