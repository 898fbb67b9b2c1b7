// Memory for numbers that are made on the host and read on a device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

namespace hdetach {

// Pinned for a GPU, so that a non-blocking copy goes on while the host does other things.
inline at::Tensor host_memory(at::IntArrayRef sizes, at::ScalarType type,
                              const at::Device& device) {
  return at::empty(sizes, at::TensorOptions(type).pinned_memory(device.is_cuda()));
}

}  // namespace hdetach
