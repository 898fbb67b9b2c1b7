// The CUDA kernels and what they ask of the machine.
#pragma once

#include "kernels/kernel.h"

namespace hdetach {

// Best first where a shape suits both.
extern const Kernel kCudaResident, kCudaSteps;

// Null when there is a device that can run the kernels, else the reason why not.
const char* cuda_unavailable();

}  // namespace hdetach
