// Which kernel a call gets, and the record of what it did.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/kernel.h"

namespace hdetach {

// For a question about no particular call.
constexpr LstmShape kAnyShape = {1, 1, 1, 1};

// choose_kernel() for float32 tensors; throws c10::Error.
const Kernel* kernel_of_call(Device device, const LstmShape& shape);

void record_forward(const char* kernel);
// The count is an int64 of the kernel's device, undefined when nobody counted.
void record_backward(const char* kernel, const at::Tensor& recurrent_products);
bool counting_products();

}  // namespace hdetach
