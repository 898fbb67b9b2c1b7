// Every rule the op's arguments must meet, in one place.
#pragma once

#include "hdetach/lstm.h"
#include "kernels/kernel.h"

namespace hdetach {

// What the checks leave behind: contiguous arguments, scales and lengths in the type kernels read.
struct LstmInputs {
  at::Tensor x, h0, c0, w_ih, w_hh, b_ih, b_hh;  // biases undefined when absent
  at::Tensor h_scale, c_scale;                   // float32 (float64 for float64 x), or undefined
  at::Tensor lengths;                            // int64 on x's device, or undefined

  int64_t steps() const { return x.size(0); }
  int64_t batch() const { return x.size(1); }
  int64_t input() const { return x.size(2); }
  int64_t hidden() const { return h0.size(1); }
};

inline LstmShape shape_of(const LstmInputs& in) {
  return {in.steps(), in.batch(), in.input(), in.hidden()};
}

// Types, devices and shapes. Throws c10::Error naming the argument and its value. Needs no numbers:
// sizes may be symbols. Copies what is not contiguous.
LstmInputs check_shapes(const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                        const at::Tensor& w_ih, const at::Tensor& w_hh, const OptionalTensor& b_ih,
                        const OptionalTensor& b_hh, const OptionalTensor& h_scale,
                        const OptionalTensor& c_scale, const OptionalTensor& lengths);

// check_shapes, and the values of scales and lengths where they can be read at no cost: on the CPU,
// outside of a trace.
decltype(check_shapes) check_lstm;

}  // namespace hdetach
