// Which kernel runs, and what the last call did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdetach {

struct KernelInfo {
  std::string name;
  bool available;      // this machine can run it
  std::string reason;  // why not, empty when available
};

// Every kernel of this build, best first. The last is "reference", which runs anywhere.
std::vector<KernelInfo> kernels();

// The kernel that float32 CPU tensors get: the one named by the environment variable
// HDETACH_KERNEL, else the first available. Throws when that variable names no kernel of this
// build or one this machine cannot run.
std::string active_kernel();

// The latest forward pass of this process and the latest backward pass that a kernel ran, for tests
// and benchmarks.
struct CallStats {
  std::string kernel;              // the kernel that ran
  int64_t recurrent_products = 0;  // backward: (step, row) pairs that were multiplied with w_hh
};
CallStats last_forward();
CallStats last_backward();

// Gives the memory that large calls keep for their successors back to the system.
void release_buffers();

}  // namespace hdetach
