// The boundary between torch and the kernels: raw pointers in a POD. Nothing below this
// header allocates, draws random numbers or sees torch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hdetach {

enum class Device { kCpu, kCuda };

struct LstmShape {
  int64_t steps;   // T
  int64_t batch;   // B
  int64_t input;   // I
  int64_t hidden;  // H
  // Independent problems side by side: every array below has this as one more leading dimension.
  // CPU kernels take one.
  int64_t replicas = 1;
};

// The caller's threads. run() calls task(context, i) once for every i in [0, tasks), possibly at
// the same time, and returns when all are done.
struct Workers {
  int count;
  void (*run)(int tasks, void (*task)(void* context, int index), void* context);
};

// A scale per step, or per step and row:
// value(r, t, b) = data[r * replica_stride + t * step_stride + b * row_stride].
struct ScaleView {
  const float* data;  // null means ones
  int64_t step_stride;
  int64_t row_stride;
  int64_t replica_stride = 0;
};

struct Weights {
  const float* w_ih;  // [4H, I], gates i f g o
  const float* w_hh;  // [4H, H]
  const float* b_ih;  // [4H] or null
  const float* b_hh;  // [4H] or null
};

// What both passes read. Pointers are to memory of the kernel's device.
struct LstmArgs {
  LstmShape shape;
  Weights weights;
  const float* x;          // [T, B, I]
  const float* h0;         // [B, H]; null means zeros, for CUDA kernels
  const float* c0;         // [B, H]; likewise
  const int64_t* lengths;  // [B] or null
  Workers workers;         // of a CPU kernel
  void* stream = nullptr;  // of a CUDA kernel: a cudaStream_t. Work is queued there, not waited for
};

struct ForwardArgs : LstmArgs {
  float* h;         // [T, B, H]
  float* c;         // [T, B, H]
  float* gates;     // [T, B, 4, H] activated gates for the backward pass, or null. CUDA kernels
                    // keep them as [T, B, H, 4]
  void* workspace;  // forward_workspace() bytes, aligned to 64
};

struct BackwardArgs : LstmArgs {
  const float* h;      // [T, B, H] saved by forward, as are c and gates; all read-only
  const float* c;      // [T, B, H]
  const float* gates;  // as forward left them
  ScaleView h_scale;
  ScaleView c_scale;
  const float* dh;  // [T, B, H] or null
  const float* dc;  // [T, B, H] or null
  float* dx;        // [T, B, I] or null: not wanted
  float* dh0;       // [B, H] or null
  float* dc0;       // [B, H] or null
  float* dw_ih;     // [4H, I] or null
  float* dw_hh;     // [4H, H] or null
  float* db_ih;     // [4H] or null
  float* db_hh;     // [4H] or null: the same numbers
  void* workspace;  // backward_workspace() bytes, aligned to 64
  // out: (step, row) pairs multiplied with w_hh, over all replicas. CUDA kernels add to it, and
  // null means that nobody asks.
  int64_t* recurrent_products;
};

struct Kernel {
  const char* name;
  Device device;
  // Null when this machine can run the kernel, else the reason why not.
  const char* (*unavailable)();
  // Null when the kernel takes this shape, else the reason why not.
  const char* (*unsuited)(const LstmShape&);
  size_t (*forward_workspace)(const LstmShape&, int workers);
  size_t (*backward_workspace)(const LstmShape&, int workers);
  void (*forward)(const ForwardArgs&);
  void (*backward)(const BackwardArgs&);
};

// All kernels of this build, best first.
struct KernelTable {
  const Kernel* const* kernels;
  int count;
};
KernelTable kernel_table();

// Null when the kernel can run here and takes this shape, else the reason why not.
const char* refusal(const Kernel& kernel, const LstmShape& shape);

// The kernel called `name`, else null.
const Kernel* find_kernel(const char* name);

// Makes one more kernel known to find_kernel: a test's own, such as AMX in emulation.
void add_kernel(const Kernel* kernel);

// The first kernel of the table for this device that can run here and takes this shape; null when
// there is none.
const Kernel* best_kernel(Device device, const LstmShape& shape);

// The kernel for a call: the one that the environment variable HDETACH_KERNEL names, if it is for
// this device, else the best. Null means the reference, which was named or is all there is. Throws
// std::runtime_error when the variable names none, or one that cannot run here or on this shape.
const Kernel* choose_kernel(Device device, const LstmShape& shape);
constexpr const char* kReferenceName = "reference";

// For kernels that take any shape.
inline const char* any_shape(const LstmShape&) { return nullptr; }

}  // namespace hdetach
