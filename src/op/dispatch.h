// Which kernel a call gets, and the record of what it did.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/kernel.h"

namespace hdetach {

// The kernel for float32 tensors of this shape on this device; null means the reference. Throws
// when HDETACH_KERNEL names none, or one for this device that cannot run here or on this shape.
const Kernel* choose_kernel(Device device, const LstmShape& shape);

void record_forward(const char* kernel);
// The count is an int64 of the kernel's device, undefined when nobody counted.
void record_backward(const char* kernel, const at::Tensor& recurrent_products);
bool counting_products();

}  // namespace hdetach
