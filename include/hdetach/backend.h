// Which kernel runs, and what the last call did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdetach {

struct KernelInfo {
  std::string name;
  std::string device;  // "cpu" or "cuda"; the reference's is both
  bool available;      // this machine can run it
  std::string reason;  // why not, empty when available
};

// Every kernel of this build, best first. The last is "reference", which runs anywhere.
std::vector<KernelInfo> kernels();

// The kernel that float32 CPU tensors get: the one named by the environment variable
// HDETACH_KERNEL if it is for the CPU, else the first available. Throws when that variable names no
// kernel of this build or one this machine cannot run.
std::string active_kernel();

// The kernel that float32 CUDA tensors of this shape get, by the same rule. The first available
// that takes the shape, "reference" where there is none.
std::string cuda_kernel_for(int64_t steps, int64_t batch, int64_t input, int64_t hidden);

// The latest forward pass of this process and the latest backward pass that a kernel ran, for tests
// and benchmarks.
struct CallStats {
  std::string kernel;              // the kernel that ran
  int64_t recurrent_products = 0;  // backward: (step, row) pairs that were multiplied with w_hh;
                                   // -1 when they were not counted
};
CallStats last_forward();
CallStats last_backward();  // waits for a CUDA kernel that counted

// CUDA kernels count their products only when asked: the counter costs a launch.
void count_products(bool on);

// Gives the memory that large calls keep for their successors back to the system.
void release_buffers();

}  // namespace hdetach
