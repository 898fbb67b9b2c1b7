// Which kernel a call gets, and the record of what it did.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace hdetach {

// The kernel for float32 CPU tensors; null means the reference.
const Kernel* choose_kernel();

void record_forward(const char* kernel);
void record_backward(const char* kernel, int64_t recurrent_products);

}  // namespace hdetach
