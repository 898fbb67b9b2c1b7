#include "op/stack.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <string>
#include <utility>

#include "op/host_memory.h"
#include "op/ops.h"
#include "op/sizes.h"

namespace hdetach {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Moves rows between a packed and a padded sequence. No row of the index repeats, so gathering and
// scattering are each other's gradient; index_select's own would add row by row.
struct GatherRows : torch::autograd::Function<GatherRows> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& index);
  static variable_list backward(AutogradContext* context, const variable_list& grads);
};

struct ScatterRows : torch::autograd::Function<ScatterRows> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Tensor& index,
                        int64_t count);
  static variable_list backward(AutogradContext* context, const variable_list& grads);
};

Tensor GatherRows::forward(AutogradContext* context, const Tensor& rows, const Tensor& index) {
  context->save_for_backward({index});
  context->saved_data["count"] = rows.size(0);
  return rows.index_select(0, index);
}

variable_list GatherRows::backward(AutogradContext* context, const variable_list& grads) {
  const Tensor index = context->get_saved_variables()[0];
  return {ScatterRows::apply(grads[0], index, context->saved_data["count"].toInt()), Tensor()};
}

Tensor ScatterRows::forward(AutogradContext* context, const Tensor& rows, const Tensor& index,
                            int64_t count) {
  context->save_for_backward({index});
  return at::zeros({count, rows.size(1)}, rows.options()).index_put_({index}, rows);
}

variable_list ScatterRows::backward(AutogradContext* context, const variable_list& grads) {
  const Tensor index = context->get_saved_variables()[0];
  return {GatherRows::apply(grads[0], index), Tensor(), Tensor()};
}

// On x's device, with columns in the order of the sorted batch. Joint draws share one tensor, which
// is moved once.
void place(std::vector<Tensor>& scales, const Tensor& x, const Tensor& sorted_indices) {
  Tensor given, placed;
  for (Tensor& scale : scales) {
    if (!scale.defined()) continue;
    if (!scale.is_same(given)) {
      given = scale;
      placed = scale.to(x.device());
      if (scale.dim() == 2 && sorted_indices.defined()) {
        placed = placed.index_select(1, sorted_indices);
      }
    }
    scale = placed;
  }
}

OptionalTensor entry(const std::vector<Tensor>& scales, size_t index) {
  return scales.empty() ? OptionalTensor() : optional(scales[index]);
}

// The rules that involve more than one layer; hdetach::lstm checks the rest.
void check_stack(const Tensor& input, const Tensor& h0, const Tensor& c0, at::TensorList weights,
                 const StackOptions& options, const StackLayout& layout) {
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
  const Size batch = layout.is_packed() ? Size(layout.batch) : size_of(input, 1);
  const Size want[] = {states, batch, size_of(weights[1], 1)};
  const auto check_state = [&](const char* name, const Tensor& state) {
    check_like(name, -1, state);
    TORCH_CHECK(sizes_of(state) == Sizes(want), "[lstm_stack] ", name, " has shape ",
                sizes_of(state), "; for this input and these weights it must be ", Sizes(want),
                ", [layers * directions, B, H].");
  };
  check_state("h0", h0);
  check_state("c0", c0);
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

StackLayout StackLayout::packed(const Tensor& data, const Tensor& batch_sizes,
                                const Tensor& sorted_indices, bool bidirectional) {
  TORCH_CHECK(batch_sizes.device().is_cpu() && !is_traced(batch_sizes),
              "[LSTM] batch_sizes of packed_input must be numbers on the CPU, to be read now; "
              "torch.compile cannot take a packed sequence.");
  const Tensor sizes_tensor = batch_sizes.to(at::kLong).contiguous();
  const int64_t steps = sizes_tensor.numel();
  TORCH_CHECK(steps > 0, "[LSTM] packed_input has no steps; a sequence needs at least one.");
  const int64_t* sizes = sizes_tensor.data_ptr<int64_t>();
  const int64_t batch = sizes[0], total = data.size(0);
  StackLayout layout;
  layout.steps = steps;
  layout.batch = batch;
  layout.sorted_indices = sorted_indices;
  int64_t stored = 0;
  for (int64_t t = 0; t < steps; ++t) {
    TORCH_CHECK(sizes[t] > 0 && sizes[t] <= sizes[t > 0 ? t - 1 : 0], "[LSTM] batch_sizes[", t,
                "] of packed_input is ", sizes[t], "; they must be positive and never grow.");
    stored += sizes[t];
  }
  TORCH_CHECK(stored == total, "[LSTM] packed_input has ", total, " rows of data but its ",
              "batch_sizes sum to ", stored, ".");

  if (stored == steps * batch) return layout;  // [T,B,F], written as [T*B,F]

  // All numbers in one copy, which nobody waits for.
  const int64_t directions = bidirectional ? 2 : 1;
  const Tensor numbers = host_memory({directions * total + 2 * batch}, at::kLong, data.device());
  int64_t* length = numbers.data_ptr<int64_t>();
  int64_t* last = length + batch;
  int64_t* row = last + batch;
  for (int64_t t = 0; t < steps; ++t) std::fill(length, length + sizes[t], t + 1);
  for (int64_t b = 0; b < batch; ++b) last[b] = (length[b] - 1) * batch + b;
  for (int64_t direction = 0; direction < directions; ++direction) {
    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t b = 0; b < sizes[t]; ++b) {
        *row++ = (direction == 1 ? length[b] - 1 - t : t) * batch + b;
      }
    }
  }
  const Tensor there = numbers.to(data.device(), at::kLong, /*non_blocking=*/true);
  layout.lengths = there.narrow(0, 0, batch);
  layout.last = there.narrow(0, batch, batch);
  for (int64_t direction = 0; direction < directions; ++direction) {
    layout.position[direction] = there.narrow(0, 2 * batch + direction * total, total);
  }
  return layout;
}

Tensor StackLayout::to_steps(const Tensor& data, bool reverse) const {
  const auto padded = [&](const Tensor& rows) { return rows.view({steps, batch, rows.size(1)}); };
  if (lengths.defined()) {
    return padded(ScatterRows::apply(data, position[reverse], steps * batch));
  }
  const Tensor dense = is_packed() ? padded(data) : data;
  return reverse ? dense.flip(0) : dense;
}

Tensor StackLayout::from_steps(const Tensor& states, bool reverse) const {
  if (lengths.defined()) return GatherRows::apply(states.flatten(0, 1), position[reverse]);
  const Tensor dense = reverse ? states.flip(0) : states;
  return is_packed() ? dense.flatten(0, 1) : dense;
}

Tensor StackLayout::final_state(const Tensor& states) const {
  return lengths.defined() ? GatherRows::apply(states.flatten(0, 1), last) : states.select(0, -1);
}

StackResult run_stack(Tensor input, const StackLayout& layout, const Tensor& h0, const Tensor& c0,
                      at::TensorList weights, const StackOptions& options, GradientScales scales,
                      bool want_cells) {
  place(scales.h_scale, input, layout.sorted_indices);
  place(scales.c_scale, input, layout.sorted_indices);
  const int64_t directions = options.bidirectional ? 2 : 1, stride = options.has_biases ? 4 : 2;

  std::vector<Tensor> h_n, c_n, cells;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    std::vector<Tensor> layer_h, layer_c;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t index = layer * directions + direction;
      const at::TensorList w = weights.slice(index * stride, stride);
      const auto bias = [&](int64_t i) {
        return options.has_biases ? OptionalTensor(w[i]) : OptionalTensor();
      };
      const auto [h, c] = lstm(layout.to_steps(input, direction == 1), h0[index], c0[index], w[0],
                               w[1], bias(2), bias(3), entry(scales.h_scale, index),
                               entry(scales.c_scale, index), optional(layout.lengths));
      layer_h.push_back(layout.from_steps(h, direction == 1));
      if (want_cells) layer_c.push_back(layout.from_steps(c, direction == 1));
      h_n.push_back(layout.final_state(h));
      c_n.push_back(layout.final_state(c));
    }
    input = joined(layer_h);
    if (want_cells) cells.push_back(joined(layer_c));
    if (options.dropout > 0.0 && options.train && layer + 1 < options.num_layers) {
      input = at::dropout(input, options.dropout, /*train=*/true);
    }
  }
  return {input, at::stack(h_n), at::stack(c_n), std::move(cells)};
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> lstm_stack(
    const Tensor& input, const Tensor& h0, const Tensor& c0, at::TensorList weights,
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
  StackLayout layout;
  if (packed) {
    layout =
        StackLayout::packed(input, *batch_sizes, sorted_indices.value_or(Tensor()), bidirectional);
  }
  const StackOptions options{has_biases, num_layers, dropout, train, bidirectional};
  check_stack(input, h0, c0, weights, options, layout);
  const int64_t states = num_layers * (bidirectional ? 2 : 1);
  GradientScales scales{check_scales("h_scale", h_scale, states),
                        check_scales("c_scale", c_scale, states)};
  StackResult out =
      run_stack(input, layout, h0, c0, weights, options, std::move(scales), return_cells);
  return {std::move(out.output), std::move(out.h_n), std::move(out.c_n), std::move(out.cells)};
}

}  // namespace hdetach
