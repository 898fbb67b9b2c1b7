// What library.cpp registers, beside the functions of include/hdetach/lstm.h.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "hdetach/lstm.h"

namespace hdetach {

using OptionalTensorList = c10::List<c10::optional<at::Tensor>>;

// hdetach::lstm and hdetach::lstm_cell behind the dispatcher.
std::tuple<at::Tensor, at::Tensor> lstm_impl(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale, const OptionalTensor& lengths);
std::tuple<at::Tensor, at::Tensor> lstm_cell_impl(
    const at::Tensor& x, const at::Tensor& h, const at::Tensor& c, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale);

// run_stack for Python and TorchScript. Without batch_sizes the input is [T,B,I], with them [N,I].
// The lists of scales are empty (ones) or hold an entry for each layer and direction.
std::tuple<at::Tensor, at::Tensor, at::Tensor, std::vector<at::Tensor>> lstm_stack(
    const at::Tensor& input, const at::Tensor& h0, const at::Tensor& c0, at::TensorList weights,
    bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
    const OptionalTensorList& h_scale, const OptionalTensorList& c_scale,
    const OptionalTensor& batch_sizes, const OptionalTensor& sorted_indices, bool return_cells);

}  // namespace hdetach
