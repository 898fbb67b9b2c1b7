#include "op/stack.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "op/cuda_stream.h"
#include "op/host_memory.h"
#include "op/ops.h"
#include "op/sizes.h"

namespace hdetach {
namespace {

using at::Tensor;

// Scales drawn on the host are copied from pinned memory, so that a GPU's stream goes on.
Tensor moved(const Tensor& scale, const at::Device& device) {
  const bool copied = device.is_cuda() && scale.device().is_cpu() && !is_traced(scale);
  if (!copied) return scale.to(device);
  const c10::OptionalDeviceGuard guard(device);  // its current stream is asked, and used
  TORCH_CHECK(!current_stream_is_captured(),
              "[lstm_stack] the scales are on the CPU, and a CUDA graph is being captured: they "
              "would be frozen into the graph, and every replay would block the same steps. Draw "
              "on the GPU (Python: generator=None), or pass scales in a tensor on the GPU that is "
              "filled before each replay (C++: forward_with_scales).");
  const Tensor pinned = host_memory(scale.sizes(), scale.scalar_type(), device).copy_(scale);
  return pinned.to(device, scale.scalar_type(), /*non_blocking=*/true);
}

// On x's device, with columns in the order of the sorted batch. Joint draws share one tensor, which
// is moved once.
void place(const char* name, std::vector<Tensor>& scales, const Tensor& x, const Tensor& order) {
  Tensor given, placed;
  for (Tensor& scale : scales) {
    if (!scale.defined()) continue;
    if (!scale.is_same(given)) {
      given = scale;
      placed = moved(scale, x.device());
      if (scale.dim() == 2 && order.defined()) {
        // What index_select takes may have more columns.
        TORCH_CHECK(scale.size(1) == order.size(0), "[lstm] ", name, " has ", scale.size(1),
                    " columns but x has B=", order.size(0), " rows.");
        placed = placed.index_select(1, order);
      }
    }
    scale = placed;
  }
}

OptionalTensor entry(const std::vector<Tensor>& scales, size_t index) {
  return scales.empty() ? OptionalTensor() : optional(scales[index]);
}

Size batch_of(const Tensor& input, const Packing* packing) {
  return packing != nullptr ? Size(packing->batch) : size_of(input, 1);
}

Tensor zero_state(const Size& batch, const Size& hidden, const Tensor& like) {
#if TORCH_VERSION_MAJOR >= 2
  return at::zeros_symint({batch, hidden}, like.options());
#else
  return at::zeros({batch, hidden}, like.options());
#endif
}

// The rules that involve more than one layer; hdetach::lstm checks the rest.
void check_stack(const Tensor& input, const Packing* packing, const OptionalTensor& h0,
                 const OptionalTensor& c0, at::TensorList weights, const StackOptions& options) {
  const int64_t states = options.num_layers * (options.bidirectional ? 2 : 1);
  const int64_t stride = options.has_biases ? 4 : 2;
  TORCH_CHECK(static_cast<int64_t>(weights.size()) == states * stride, "[lstm_stack] weights has ",
              weights.size(), " entries but ", options.num_layers, " layers, ",
              options.bidirectional ? "bidirectional, " : "",
              options.has_biases ? "with" : "without", " biases, have ", states * stride, ".");
  const auto check_like = [&](const char* name, int64_t index, const Tensor& tensor) {
    const auto called = [&] {
      return index < 0 ? std::string(name) : c10::str(name, "[", index, "]");
    };
    TORCH_CHECK(tensor.defined(), "[lstm_stack] ", called(), " is undefined.");
    TORCH_CHECK(tensor.scalar_type() == input.scalar_type(), "[lstm_stack] ", called(), " is ",
                tensor.scalar_type(), " but input is ", input.scalar_type(),
                "; convert one of them with .to().");
    TORCH_CHECK(tensor.device() == input.device(), "[lstm_stack] ", called(), " is on ",
                tensor.device(), " but input is on ", input.device(),
                "; move one of them with .to().");
  };
  for (size_t i = 0; i < weights.size(); ++i) check_like("weights", i, weights[i]);
  TORCH_CHECK(weights[1].dim() == 2, "[lstm_stack] weights[1] has shape ", sizes_of(weights[1]),
              "; it must be w_hh of the first layer, [4H,H].");
  TORCH_CHECK(h0.has_value() == c0.has_value(), "[lstm_stack] ", h0 ? "c0" : "h0",
              " is missing; pass both states or none.");
  if (!h0.has_value()) return;
  const Size want[] = {states, batch_of(input, packing), size_of(weights[1], 1)};
  const auto check_state = [&](const char* name, const Tensor& state) {
    check_like(name, -1, state);
    TORCH_CHECK(sizes_of(state) == Sizes(want), "[lstm_stack] ", name, " has shape ",
                sizes_of(state), "; for this input and these weights it must be ", Sizes(want),
                ", [layers * directions, B, H].");
  };
  check_state("h0", *h0);
  check_state("c0", *c0);
}

std::vector<Tensor> check_scales(const char* name, at::TensorList scales, int64_t states) {
  TORCH_CHECK(scales.empty() || static_cast<int64_t>(scales.size()) == states, "[lstm_stack] ",
              name, " has ", scales.size(), " entries but there are ", states,
              " layers and directions; an empty list means ones.");
  return scales.vec();
}

Tensor joined(const std::vector<Tensor>& directions) {
  return directions.size() == 1 ? directions[0] : at::cat(directions, -1);
}

}  // namespace

StackResult run_stack(Tensor input, Packing* packing, const OptionalTensor& h0,
                      const OptionalTensor& c0, at::TensorList weights, const StackOptions& options,
                      GradientScales scales, bool want_cells) {
  const Tensor order = packing != nullptr ? packing->order : Tensor();
  const Tensor lengths = packing != nullptr ? packing->lengths() : Tensor();
  place("h_scale", scales.h_scale, input, order);
  place("c_scale", scales.c_scale, input, order);
  Tensor zeros;
  if (!h0.has_value()) {
    zeros = packing != nullptr ? packing->zero_state(weights[1].size(1), input.options())
                               : zero_state(size_of(input, 1), size_of(weights[1], 1), input);
  }
  const auto state = [&](const OptionalTensor& given, int64_t index) {
    if (!given.has_value()) return zeros;
    const Tensor own = given->select(0, index);
    return order.defined() ? own.index_select(0, order) : own;
  };
  const int64_t directions = options.bidirectional ? 2 : 1, stride = options.has_biases ? 4 : 2;

  std::vector<Tensor> h_n, c_n, cells;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    std::vector<Tensor> layer_h, layer_c;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const bool reverse = direction == 1;
      const int64_t index = layer * directions + direction;
      const at::TensorList w = weights.slice(index * stride, stride);
      const auto bias = [&](int64_t i) {
        return options.has_biases ? OptionalTensor(w[i]) : OptionalTensor();
      };
      const Tensor x = packing != nullptr ? packing->to_steps(input, reverse)
                                          : (reverse ? input.flip(0) : input);
      const auto [h, c] =
          lstm(x, state(h0, index), state(c0, index), w[0], w[1], bias(2), bias(3),
               entry(scales.h_scale, index), entry(scales.c_scale, index), optional(lengths));
      if (packing != nullptr) {
        PackedStates states = packing->to_rows(h, c, reverse, want_cells);
        layer_h.push_back(std::move(states.h_rows));
        layer_c.push_back(std::move(states.c_rows));
        h_n.push_back(std::move(states.h_last));
        c_n.push_back(std::move(states.c_last));
      } else {
        layer_h.push_back(reverse ? h.flip(0) : h);
        if (want_cells) layer_c.push_back(reverse ? c.flip(0) : c);
        h_n.push_back(h.narrow(0, -1, 1));
        c_n.push_back(c.narrow(0, -1, 1));
      }
    }
    input = joined(layer_h);
    if (want_cells) cells.push_back(joined(layer_c));
    if (options.dropout > 0.0 && options.train && layer + 1 < options.num_layers) {
      input = at::dropout(input, options.dropout, /*train=*/true);
    }
  }
  // A packed sequence's last states are tensors of their own already.
  const auto all = [&](const std::vector<Tensor>& last) {
    return packing != nullptr && last.size() == 1 ? last[0] : at::cat(last);
  };
  return {input, all(h_n), all(c_n), std::move(cells)};
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> lstm_stack(
    const Tensor& input, const OptionalTensor& h0, const OptionalTensor& c0, at::TensorList weights,
    bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
    at::TensorList h_scale, at::TensorList c_scale, const OptionalTensor& batch_sizes,
    const OptionalTensor& sorted_indices, bool return_cells) {
  const bool packed = batch_sizes.has_value() && batch_sizes->defined();
  TORCH_CHECK(input.defined(), "[lstm_stack] input is undefined; it must be [T,B,I].");
  TORCH_CHECK(input.dim() == (packed ? 2 : 3), "[lstm_stack] input has shape ", sizes_of(input),
              "; it must be ", packed ? "[N,I], as batch_sizes are given." : "[T,B,I].");
  TORCH_CHECK(num_layers > 0, "[lstm_stack] num_layers is ", num_layers, "; it must be positive.");
  TORCH_CHECK(dropout >= 0.0 && dropout <= 1.0, "[lstm_stack] dropout is ", dropout,
              "; it must be in [0,1].");
  Packing packing;
  if (packed) packing = Packing::of(input, *batch_sizes, sorted_indices.value_or(Tensor()));
  Packing* given_packing = packed ? &packing : nullptr;
  const StackOptions options{has_biases, num_layers, dropout, train, bidirectional};
  check_stack(input, given_packing, h0, c0, weights, options);
  const int64_t states = num_layers * (bidirectional ? 2 : 1);
  GradientScales scales{check_scales("h_scale", h_scale, states),
                        check_scales("c_scale", c_scale, states)};
  StackResult out =
      run_stack(input, given_packing, h0, c0, weights, options, std::move(scales), return_cells);
  return {std::move(out.output), std::move(out.h_n), std::move(out.c_n), std::move(out.cells)};
}

}  // namespace hdetach
