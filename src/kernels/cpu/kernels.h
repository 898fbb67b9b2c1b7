// The CPU kernels and what they ask of the machine.
#pragma once

#include "kernels/kernel.h"

namespace hdetach {

extern const Kernel kCpuGeneric, kCpuAvx2, kCpuAvx512, kCpuAmx;

// Null when this CPU has the instructions, else the reason why not. Compiled for any x86.
const char* avx2_unavailable();
const char* avx512_unavailable();
const char* amx_unavailable();

}  // namespace hdetach
