// Every CUDA call is checked; what failed is thrown.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace hdetach::cuda {

inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // or the next call would report it again
  throw std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(error));
}

}  // namespace hdetach::cuda
