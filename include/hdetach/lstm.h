// The op: an LSTM over a whole sequence whose gradient can be scaled per time step.
//
// Gate order, weight shapes and parameter meaning are those of torch.nn.LSTM (i, f, g, o). The
// scales steer the backward pass only: step t multiplies the gradient it sends into h[t-1] by
// h_scale[t] and the gradient it sends into c[t-1] by c_scale[t]. The forward pass never reads
// them. A step whose h_scale is 0 does no recurrent product in the backward pass.
//
// The same functions are registered with TORCH_LIBRARY as hdetach::lstm and hdetach::lstm_cell.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <tuple>

namespace hdetach {

using OptionalTensor = c10::optional<at::Tensor>;

// Runs the LSTM over a sequence and returns every hidden and every cell state. Both outputs are
// differentiable. Past a row's length both are zero and take no gradient. Throws c10::Error with
// the argument's name and value on bad input.
std::tuple<at::Tensor, at::Tensor> lstm(  // -> h [T,B,H], c [T,B,H]
    const at::Tensor& x,                  // [T,B,I] float32 (kernels) or float64 (reference)
    const at::Tensor& h0,                 // [B,H]
    const at::Tensor& c0,                 // [B,H]
    const at::Tensor& w_ih,               // [4H,I]
    const at::Tensor& w_hh,               // [4H,H]
    const OptionalTensor& b_ih = {},      // [4H]
    const OptionalTensor& b_hh = {},      // [4H]
    const OptionalTensor& h_scale = {},   // [T] or [T,B], each in [0,1]; absent means ones
    const OptionalTensor& c_scale = {},   // [T] or [T,B], each in [0,1]; absent means ones
    const OptionalTensor& lengths = {});  // [B] int64, each in 1..T; absent means T

// One step, for models that need each state before the next input (attention).
std::tuple<at::Tensor, at::Tensor> lstm_cell(  // -> h [B,H], c [B,H]
    const at::Tensor& x,                       // [B,I]
    const at::Tensor& h,                       // [B,H] previous hidden state
    const at::Tensor& c,                       // [B,H] previous cell state
    const at::Tensor& w_ih, const at::Tensor& w_hh, const OptionalTensor& b_ih = {},
    const OptionalTensor& b_hh = {}, const OptionalTensor& h_scale = {},  // [] or [B]
    const OptionalTensor& c_scale = {});                                  // [] or [B]

// Algorithm 1 of the paper as written: a loop of ATen operations with detach(). The judge of every
// kernel, the float64 path, and the graph that double backward differentiates.
std::tuple<at::Tensor, at::Tensor> lstm_reference(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih = {}, const OptionalTensor& b_hh = {},
    const OptionalTensor& h_scale = {}, const OptionalTensor& c_scale = {},
    const OptionalTensor& lengths = {});

}  // namespace hdetach
