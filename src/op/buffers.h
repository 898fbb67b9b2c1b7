// Large buffers that come back from one training step to the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hdetach {

// An uninitialised tensor. A large one takes memory that an earlier one gave back: fresh memory
// costs a page fault every 4 KB, a third of the forward pass on copy300. What is in use and what is
// kept together stay within 9/8 of the most that was in use at once.
// Elsewhere than on the CPU the device's own allocator does all this.
at::Tensor recycled(at::IntArrayRef sizes, const at::TensorOptions& options);

struct BufferUse {
  int64_t in_use = 0;  // bytes in live tensors of recycled()
  int64_t kept = 0;    // bytes held for reuse
};
BufferUse buffer_use();

}  // namespace hdetach
