// One step forward and one step back, each a launch: the recurrent product (step_product.cuh), then
// everything that happens to a unit by itself.
#pragma once

#include "kernels/cuda/activations.cuh"
#include "kernels/cuda/step_product.cuh"
#include "kernels/kernel.h"

namespace hdetach::cuda {

// Both take a grid of (row tiles x cluster, column tiles, replicas).
template <int kColumns>
using ForwardProduct = StepProduct<AlongK<64>, kColumns>;  // rows: four gates of 16 units
template <int kColumns>
using BackwardProduct = StepProduct<AcrossK<64>, kColumns>;  // rows: 64 units

struct ForwardStep {
  ForwardArgs args;
  float* projected;  // [R, T, B, H, 4]; where args.gates are wanted, it is they
  bool aligned;      // lines of w_hh, h and h0 start at 16 bytes
};

struct BackwardStep {
  BackwardArgs args;
  float* dgates;    // [R, T, B, H, 4]
  float* dc_carry;  // [R, B, H] what step t + 1 sends into c[t]
  bool aligned;     // lines of w_hh start at 16 bytes
};

__device__ __forceinline__ int64_t length_of(const LstmArgs& args, int64_t replica, int64_t row) {
  return args.lengths == nullptr ? args.shape.steps
                                 : args.lengths[replica * args.shape.batch + row];
}

__device__ __forceinline__ float scale_at(const ScaleView& scale, int64_t replica, int64_t t,
                                          int64_t row) {
  if (scale.data == nullptr) return 1.0f;
  return scale
      .data[replica * scale.replica_stride + t * scale.step_stride + row * scale.row_stride];
}

__device__ __forceinline__ void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

template <int kColumns>
__global__ void __launch_bounds__(kStepThreads, 2)
    forward_step(const __grid_constant__ ForwardStep step, int t) {
  using Product = ForwardProduct<kColumns>;
  constexpr int kUnits = Product::kRows / 4;
  extern __shared__ float4 shared[];
  const ForwardArgs& args = step.args;
  const int batch = static_cast<int>(args.shape.batch),
            hidden = static_cast<int>(args.shape.hidden);
  const Product product(reinterpret_cast<float*>(shared), hidden);
  const int thread = threadIdx.x;
  const int blocks = kColumns / product.own_columns();
  const int first_unit = blockIdx.x / blocks * kUnits, first_row = blockIdx.y * kColumns;
  const int64_t replica = blockIdx.z, states = static_cast<int64_t>(batch) * hidden;
  const int64_t now = (replica * args.shape.steps + t) * states;  // of h, c [.., B, H]

  const float* h_before = nullptr;
  const float* c_before = nullptr;
  if (t > 0) {
    h_before = args.h + now - states;
    c_before = args.c + now - states;
  } else {
    if (args.h0 != nullptr) h_before = args.h0 + replica * states;
    if (args.c0 != nullptr) c_before = args.c0 + replica * states;
  }
  const int my_row = first_row + thread;
  const bool runs = thread < kColumns && my_row < batch && t < length_of(args, replica, my_row);
  const bool multiply = __syncthreads_or(runs) && h_before != nullptr;

  const float* w_hh = args.weights.w_hh + replica * 4 * hidden * hidden;
  const auto fill_weights = [&](float* tile, int k) {
    AlongK<64>::fill<kStepThreads>(
        tile, thread, k, hidden, step.aligned, w_hh, [&](int line) -> const float* {
          const int unit = first_unit + line / 4;
          if (unit >= hidden) return nullptr;
          return w_hh + (static_cast<int64_t>(line % 4) * hidden + unit) * hidden;
        });
  };
  if (multiply) product.start(fill_weights);
  const int items = kUnits * product.own_columns();
  const auto place = [&](int item, int& unit, int& row) {
    unit = first_unit + item % kUnits;
    row = first_row + product.first_own_column() + item / kUnits;
    return unit < hidden && row < batch;
  };
  const float4* projected = reinterpret_cast<const float4*>(step.projected) + now;
  for (int item = thread; item < items; item += kStepThreads) {
    int unit, row;
    if (thread % 2 == 0 && place(item, unit, row)) {  // 32 bytes are two units
      prefetch(projected + static_cast<int64_t>(row) * hidden + unit);
    }
  }
  wait_for_launch_before();
  let_next_launch_start();

  if (multiply) {
    product.run(fill_weights, [&](float* tile, int k) {
      Product::States::template fill<kStepThreads>(
          tile, thread, k, hidden, step.aligned, h_before, [&](int line) -> const float* {
            const int row = first_row + line;
            return row < batch ? h_before + static_cast<int64_t>(row) * hidden : nullptr;
          });
    });
  }
#pragma unroll 2
  for (int item = thread; item < items; item += kStepThreads) {
    int unit, row;
    if (!place(item, unit, row)) continue;
    const int64_t state = static_cast<int64_t>(row) * hidden + unit, at = now + state;
    float4 gates = projected[state];
    float c = c_before == nullptr ? 0.0f : c_before[state];
    if (multiply) {
      const float4 recurrent = product.total4((unit - first_unit) * 4, row - first_row);
      gates.x += recurrent.x;
      gates.y += recurrent.y;
      gates.z += recurrent.z;
      gates.w += recurrent.w;
    }
    const float4 v = {sigmoid(gates.x), sigmoid(gates.y), hyperbolic_tangent(gates.z),
                      sigmoid(gates.w)};
    c = fmaf(v.y, c, v.x * v.z);
    float h = v.w * hyperbolic_tangent(c);
    if (t >= length_of(args, replica, row)) c = h = 0.0f;
    args.h[at] = h;
    args.c[at] = c;
    if (args.gates != nullptr) reinterpret_cast<float4*>(args.gates)[at] = v;
  }
  if (multiply) product.finish();
}

// Step t: the gradient that step t + 1 sends into h[t], then the gate gradients of t. Step -1 ends
// with what step 0 sends into h0.
template <int kColumns>
__global__ void __launch_bounds__(kStepThreads, 2)
    backward_step(const __grid_constant__ BackwardStep step, int t) {
  using Product = BackwardProduct<kColumns>;
  constexpr int kUnits = Product::kRows;
  extern __shared__ float4 shared[];
  __shared__ float kept_scale[kColumns];  // of step t + 1, 0 for rows that are not multiplied
  const BackwardArgs& args = step.args;
  const int steps = static_cast<int>(args.shape.steps), batch = static_cast<int>(args.shape.batch);
  const int hidden = static_cast<int>(args.shape.hidden), gates = 4 * hidden;
  const Product product(reinterpret_cast<float*>(shared), gates);
  const int thread = threadIdx.x;
  const int blocks = kColumns / product.own_columns();
  const int first_unit = blockIdx.x / blocks * kUnits, first_row = blockIdx.y * kColumns;
  const int64_t replica = blockIdx.z, states = static_cast<int64_t>(batch) * hidden;
  const int64_t now = (replica * steps + t) * states;  // of h, c, dh, dc [.., B, H]; t + 1 >= 0

  float scale = 0.0f;
  if (thread < kColumns) {
    const int row = first_row + thread;
    if (row < batch && t + 1 < length_of(args, replica, row)) {
      scale = scale_at(args.h_scale, replica, t + 1, row);
    }
    kept_scale[thread] = scale;
  }
  const int kept = __syncthreads_count(scale != 0.0f);
  if (blockIdx.x == 0 && thread == 0 && kept > 0 && args.recurrent_products != nullptr) {
    atomicAdd(reinterpret_cast<unsigned long long*>(args.recurrent_products),
              static_cast<unsigned long long>(kept));
  }

  const float* w_hh = args.weights.w_hh + replica * gates * hidden;
  const auto fill_weights = [&](float* tile, int first_k) {
    AcrossK<64>::fill<kStepThreads>(
        tile, thread, first_unit, hidden, step.aligned, w_hh, [&](int line) -> const float* {
          const int k = first_k + line;  // gate k % 4 of unit k / 4
          if (k >= gates) return nullptr;
          return w_hh + (static_cast<int64_t>(k % 4) * hidden + k / 4) * hidden;
        });
  };
  if (kept > 0) product.start(fill_weights);

  const int items = kUnits * product.own_columns();
  const auto place = [&](int item, int& unit, int& row) {
    unit = first_unit + item % kUnits;
    row = first_row + product.first_own_column() + item / kUnits;
    return unit < hidden && row < batch;
  };
  for (int item = thread; t >= 0 && item < items; item += kStepThreads) {
    int unit, row;
    if (!place(item, unit, row)) continue;
    const int64_t at = now + static_cast<int64_t>(row) * hidden + unit;
    if (thread % 2 == 0) prefetch(args.gates + 4 * at);  // 32 bytes are two units
    if (thread % 8 != 0) continue;
    prefetch(args.c + at);
    if (args.dh != nullptr) prefetch(args.dh + at);
    if (args.dc != nullptr) prefetch(args.dc + at);
  }
  wait_for_launch_before();
  let_next_launch_start();

  if (kept > 0) {
    const float* dgates_after = step.dgates + 4 * (now + states);
    product.run(fill_weights, [&](float* tile, int k) {
      Product::States::template fill<kStepThreads>(
          tile, thread, k, gates, true, dgates_after, [&](int line) -> const float* {
            if (kept_scale[line] == 0.0f) return nullptr;
            return dgates_after + static_cast<int64_t>(first_row + line) * gates;
          });
    });
  }
  for (int item = thread; item < items; item += kStepThreads) {
    int unit, row;
    if (!place(item, unit, row)) continue;
    const int64_t state = static_cast<int64_t>(row) * hidden + unit, at = now + state;
    const float scale_after = kept_scale[row - first_row];
    float dh = 0.0f;  // where() of the reference: 0 * inf must not come in
    if (scale_after != 0.0f) dh = scale_after * product.total(unit - first_unit, row - first_row);
    if (t < 0) {
      args.dh0[replica * states + state] = dh;
      continue;
    }
    float4 dgates = {};
    float dc = 0.0f;
    if (t < length_of(args, replica, row)) {
      const float4 v = reinterpret_cast<const float4*>(args.gates)[at];
      const float tanh_c = hyperbolic_tangent(args.c[at]);
      float c_before = 0.0f;
      if (t > 0) {
        c_before = args.c[at - states];
      } else if (args.c0 != nullptr) {
        c_before = args.c0[replica * states + state];
      }
      if (args.dh != nullptr) dh += args.dh[at];
      if (t + 1 < steps) dc = step.dc_carry[replica * states + state];
      if (args.dc != nullptr) dc += args.dc[at];
      dc = fmaf(dh * v.w, fmaf(-tanh_c, tanh_c, 1.0f), dc);
      dgates.x = dc * v.z * (v.x * (1.0f - v.x));
      dgates.y = dc * c_before * (v.y * (1.0f - v.y));
      dgates.z = dc * v.x * fmaf(-v.z, v.z, 1.0f);
      dgates.w = dh * tanh_c * (v.w * (1.0f - v.w));
      const float c_scale = scale_at(args.c_scale, replica, t, row);
      dc = c_scale == 0.0f ? 0.0f : c_scale * (dc * v.y);
    }
    reinterpret_cast<float4*>(step.dgates)[at] = dgates;
    if (t > 0) {
      step.dc_carry[replica * states + state] = dc;
    } else if (args.dc0 != nullptr) {
      args.dc0[replica * states + state] = dc;
    }
  }
  if (kept > 0) product.finish();
}

}  // namespace hdetach::cuda
