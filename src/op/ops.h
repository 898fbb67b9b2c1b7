// What library.cpp registers, beside the functions of include/hdetach/lstm.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>
#include <c10/util/string_view.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "hdetach/lstm.h"

namespace hdetach {

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

// hdetach::lstm and hdetach::lstm_cell behind the dispatcher.
std::tuple<at::Tensor, at::Tensor> lstm_impl(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale, const OptionalTensor& lengths);
std::tuple<at::Tensor, at::Tensor> lstm_cell_impl(
    const at::Tensor& x, const at::Tensor& h, const at::Tensor& c, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale);

// One call of a kernel on float32 tensors. `kernel` is a name of the table; the caller who gives
// one has checked the values of scales and lengths. Empty: the kernel is chosen here, everything
// checked, which is what a traced graph does. gates: undefined unless kept for a backward pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_forward_kernel(  // -> h, c, gates [T,B,4,H]
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& lengths, bool keep_gates, c10::string_view kernel);
decltype(lstm_forward_kernel) lstm_forward_meta;

// Gradients of x, h0, c0, w_ih, w_hh, b_ih, b_hh; undefined where not wanted.
using Wanted = std::array<bool, 7>;
using LstmGradients =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
LstmGradients lstm_backward_kernel(const OptionalTensor& dh, const OptionalTensor& dc,
                                   const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                                   const at::Tensor& w_ih, const at::Tensor& w_hh,
                                   const OptionalTensor& b_ih, const OptionalTensor& b_hh,
                                   const OptionalTensor& h_scale, const OptionalTensor& c_scale,
                                   const OptionalTensor& lengths, const at::Tensor& h,
                                   const at::Tensor& c, const at::Tensor& gates, Wanted wanted,
                                   c10::string_view kernel);
decltype(lstm_backward_kernel) lstm_backward_meta;

// run_stack for Python and TorchScript. Without batch_sizes the input is [T,B,I], with them [N,I].
// The lists of scales are empty (ones) or hold an entry for each layer and direction.
std::tuple<at::Tensor, at::Tensor, at::Tensor, std::vector<at::Tensor>> lstm_stack(
    const at::Tensor& input, const OptionalTensor& h0, const OptionalTensor& c0,
    at::TensorList weights, bool has_biases, int64_t num_layers, double dropout, bool train,
    bool bidirectional, at::TensorList h_scale, at::TensorList c_scale,
    const OptionalTensor& batch_sizes, const OptionalTensor& sorted_indices, bool return_cells);

}  // namespace hdetach
