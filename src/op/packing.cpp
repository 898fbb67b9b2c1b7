#include "op/packing.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_make_dual.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/packing.h"
#include "op/cuda_stream.h"
#include "op/ops.h"
#include "op/sizes.h"
#include "op/tangents.h"

namespace hdetach {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const int64_t* numbers(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<int64_t>() : nullptr;
}

template <typename T>
T* values(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

template <typename T>
void move_packed_cpu(const PackedBatch& batch, const PackedData<T>& data, bool to_steps) {
  const auto move = to_steps ? move_row<T, true> : move_row<T, false>;
  const auto count = to_steps ? rows_to_move<T, true> : rows_to_move<T, false>;
  const int64_t grain = 32768 / (data.width + 1) + 1;  // rows worth a thread
  at::parallel_for(0, count(batch, data), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) move(batch, data, i, /*first=*/0, /*stride=*/1);
  });
}

// Of h or of c, all contiguous: steps [T,B,F], rows [N,F], last [1,B,F]. Rows or last may be
// undefined; where both are, nothing is asked for, and steps are undefined too.
struct Part {
  Tensor steps, rows, last;

  template <typename T>
  PackedData<T> data() const {
    return {values<T>(steps), values<T>(rows), values<T>(last),
            steps.defined() ? steps.size(2) : 0};
  }
};

void move_packed(const Packing& packing, bool reverse, const Part& h, const Part& c,
                 bool to_steps) {
  const int64_t* lengths = numbers(packing.table);
  const PackedBatch batch{packing.steps,
                          packing.batch,
                          lengths,
                          lengths != nullptr ? lengths + packing.batch : nullptr,
                          numbers(packing.order),
                          reverse};
  const Part &one = h.steps.defined() ? h : c, &other = h.steps.defined() ? c : Part();
  const c10::OptionalDeviceGuard guard(one.steps.device());
  AT_DISPATCH_FLOATING_TYPES(one.steps.scalar_type(), "packed sequence", [&] {
    const auto first = one.data<scalar_t>(), second = other.data<scalar_t>();
    if (one.steps.device().is_cpu()) {
      move_packed_cpu(batch, first, to_steps);
      if (other.steps.defined()) move_packed_cpu(batch, second, to_steps);
    } else {
#ifdef HDETACH_WITH_CUDA
      if (packing.to_send.empty()) {
        move_packed_cuda(batch, first, second, to_steps, current_stream());
      } else {
        const Tensor& zeros = packing.to_clear;
        start_packed_cuda(
            batch, first,
            {packing.to_send.data(), packing.table.numel(), packing.table.data_ptr<int64_t>(),
             values<scalar_t>(zeros), zeros.defined() ? zeros.numel() : 0},
            current_stream());
      }
#endif
    }
  });
}

// Which of h's rows, h's last, c's rows and c's last there are.
using Given = std::array<bool, 4>;

struct Saved {
  Packing packing;
  bool reverse;
  Given given;
};

void save(AutogradContext* context, const Saved& what) {
  const Packing& packing = what.packing;
  const Given& given = what.given;
  context->save_for_backward({packing.order, packing.table});
  context->saved_data["what"] =
      std::vector<int64_t>{packing.steps, packing.batch, packing.rows, what.reverse,
                           given[0],      given[1],      given[2],     given[3]};
  context->set_materialize_grads(false);
}

Saved restore(AutogradContext* context) {
  const variable_list tensors = context->get_saved_variables();
  const std::vector<int64_t> what = context->saved_data["what"].toIntVector();
  return {{what[0], what[1], what[2], tensors[0], tensors[1], {}, {}},
          what[3] != 0,
          {what[4] != 0, what[5] != 0, what[6] != 0, what[7] != 0}};
}

// Two linear maps, each the other's transpose: rows and last states, those of `given` in that
// order, and steps, of h and of c where something of it is given.
variable_list steps_of(at::TensorList parts, const Saved& what) {
  const Packing& packing = what.packing;
  Part part[2];
  variable_list out;
  for (size_t i = 0, next = 0; i < 4; ++i) {
    if (!what.given[i]) continue;
    Part& own = part[i / 2];
    const Tensor from = parts[next++].contiguous();
    (i % 2 == 0 ? own.rows : own.last) = from;
    if (own.steps.defined()) continue;
    own.steps = at::empty({packing.steps, packing.batch, from.size(-1)}, from.options());
    out.push_back(own.steps);
  }
  move_packed(packing, what.reverse, part[0], part[1], /*to_steps=*/true);
  return out;
}

variable_list rows_of(at::TensorList steps, const Saved& what) {
  const Packing& packing = what.packing;
  Part part[2];
  variable_list out;
  for (size_t i = 0, next = 0; i < 4; ++i) {
    if (!what.given[i]) continue;
    Part& own = part[i / 2];
    if (!own.steps.defined()) own.steps = steps[next++].contiguous();
    const int64_t width = own.steps.size(2);
    if (i % 2 == 0) {
      out.push_back(own.rows = at::empty({packing.rows, width}, own.steps.options()));
    } else {
      out.push_back(own.last = at::empty({1, packing.batch, width}, own.steps.options()));
    }
  }
  move_packed(packing, what.reverse, part[0], part[1], /*to_steps=*/false);
  return out;
}

struct ToSteps : torch::autograd::Function<ToSteps> {
  static constexpr auto kMap = steps_of;
  static variable_list forward(AutogradContext* context, at::TensorList parts, const Saved& what);
  static variable_list backward(AutogradContext* context, const variable_list& grads);
};

struct ToRows : torch::autograd::Function<ToRows> {
  static constexpr auto kMap = rows_of;
  static variable_list forward(AutogradContext* context, at::TensorList steps, const Saved& what);
  static variable_list backward(AutogradContext* context, const variable_list& grads);
};

// Without a node of the graph where none is needed: most first layers and backward passes.
template <typename Map>
variable_list mapped(at::TensorList from, const Saved& what) {
  const auto needs_grad = [](const Tensor& tensor) { return tensor.requires_grad(); };
  const bool in_graph =
      c10::GradMode::is_enabled() && std::any_of(from.begin(), from.end(), needs_grad);
  if (!std::any_of(from.begin(), from.end(), has_tangent)) {
    return in_graph ? Map::apply(from, what) : Map::kMap(from, what);
  }
  // Linear: a tangent moves as its number does, with the gradient it may need.
  TORCH_CHECK(!in_graph,
              "[LSTM] packed_input takes forward-mode or reverse-mode differentiation, "
              "not both at once; pad the sequences, or set requires_grad of the input and the "
              "weights to False.");
  variable_list tangents;
  for (const Tensor& tensor : from) {
    const Tensor tangent = tangent_of(tensor);
    tangents.push_back(tangent.defined() ? tangent : at::zeros_like(tensor));
  }
  // The first of a Packing's launches sends its table along; the second finds it there.
  variable_list out = Map::kMap(from, what);
  Saved again = what;
  again.packing.to_send.clear();
  again.packing.to_clear.reset();
  const variable_list moved = mapped<Map>(tangents, again);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = at::_make_dual(out[i], moved[i], kTangentLevel);
  }
  return out;
}

variable_list ToSteps::forward(AutogradContext* context, at::TensorList parts, const Saved& what) {
  save(context, what);
  return steps_of(parts, what);
}

variable_list ToRows::forward(AutogradContext* context, at::TensorList steps, const Saved& what) {
  save(context, what);
  return rows_of(steps, what);
}

variable_list ToSteps::backward(AutogradContext* context, const variable_list& grads) {
  const Saved what = restore(context);
  Saved wanted = what;
  variable_list steps, result;
  for (size_t of = 0, next = 0; of < 2; ++of) {
    if (!what.given[2 * of] && !what.given[2 * of + 1]) continue;
    const Tensor& grad = grads[next++];
    if (grad.defined()) {
      steps.push_back(grad);
    } else {
      wanted.given[2 * of] = wanted.given[2 * of + 1] = false;
    }
  }
  const variable_list found = steps.empty() ? steps : mapped<ToRows>(steps, wanted);
  for (size_t i = 0, next = 0; i < 4; ++i) {
    if (what.given[i]) result.push_back(wanted.given[i] ? found[next++] : Tensor());
  }
  result.emplace_back();  // of `what`
  return result;
}

variable_list ToRows::backward(AutogradContext* context, const variable_list& grads) {
  const Saved what = restore(context);
  Saved found = what;
  variable_list parts, result;
  for (size_t i = 0, next = 0; i < 4; ++i) {
    if (!what.given[i]) continue;
    const Tensor& grad = grads[next++];
    found.given[i] = grad.defined();
    if (grad.defined()) parts.push_back(grad);
  }
  const variable_list steps = parts.empty() ? parts : mapped<ToSteps>(parts, found);
  for (size_t of = 0, next = 0; of < 2; ++of) {
    if (!what.given[2 * of] && !what.given[2 * of + 1]) continue;
    const bool any = found.given[2 * of] || found.given[2 * of + 1];
    result.push_back(any ? steps[next++] : Tensor());
  }
  result.emplace_back();  // of `what`
  return result;
}

Tensor checked_order(const Tensor& sorted_indices, int64_t batch, const Tensor& data) {
  if (!sorted_indices.defined()) return {};
  TORCH_CHECK(sorted_indices.scalar_type() == at::kLong && sorted_indices.dim() == 1 &&
                  sorted_indices.size(0) == batch,
              "[LSTM] sorted_indices of packed_input is ", sorted_indices.scalar_type(),
              " of shape ", sorted_indices.sizes(), "; it must be int64 [B] with B=", batch, ".");
  TORCH_CHECK(sorted_indices.device() == data.device(), "[LSTM] sorted_indices of packed_input is ",
              "on ", sorted_indices.device(), " but its data is on ", data.device(), ".");
  const Tensor order = sorted_indices.contiguous();
  if (!order.device().is_cpu()) return order;
  std::vector<bool> seen(batch);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t place = order.data_ptr<int64_t>()[b];
    TORCH_CHECK(place >= 0 && place < batch && !seen[place], "[LSTM] sorted_indices[", b,
                "] of packed_input is ", place,
                "; they must be 0..B-1 in some order, with B=", batch, ".");
    seen[place] = true;
  }
  return order;
}

}  // namespace

Packing Packing::of(const Tensor& data, const Tensor& batch_sizes, const Tensor& sorted_indices) {
  TORCH_CHECK(batch_sizes.device().is_cpu() && !is_traced(batch_sizes) && !is_traced(data),
              "[LSTM] batch_sizes of packed_input must be numbers on the CPU, to be read now, and "
              "its data must be there; torch.compile and the meta device cannot take a packed "
              "sequence.");
  TORCH_CHECK(data.scalar_type() == at::kFloat || data.scalar_type() == at::kDouble,
              "[LSTM] packed_input is ", data.scalar_type(), "; it must be float32 or float64.");
  const Tensor sizes_tensor = batch_sizes.to(at::kLong).contiguous();
  const int64_t steps = sizes_tensor.numel();
  TORCH_CHECK(steps > 0, "[LSTM] packed_input has no steps; a sequence needs at least one.");
  const int64_t* sizes = sizes_tensor.data_ptr<int64_t>();
  int64_t stored = 0;
  for (int64_t t = 0; t < steps; ++t) {
    TORCH_CHECK(sizes[t] > 0 && sizes[t] <= sizes[t > 0 ? t - 1 : 0], "[LSTM] batch_sizes[", t,
                "] of packed_input is ", sizes[t], "; they must be positive and never grow.");
    stored += sizes[t];
  }
  TORCH_CHECK(stored == data.size(0), "[LSTM] packed_input has ", data.size(0),
              " rows of data but its batch_sizes sum to ", stored, ".");

  Packing packing{steps, sizes[0], stored, checked_order(sorted_indices, sizes[0], data),
                  {},    {},       {}};
  if (stored == steps * packing.batch) return packing;
  std::vector<int64_t> table(packing.batch + steps);
  int64_t* length = table.data();
  int64_t* row = length + packing.batch;
  for (int64_t t = 0; t < steps; ++t) {
    std::fill(length, length + sizes[t], t + 1);
    if (t > 0) row[t] = row[t - 1] + sizes[t - 1];
  }
  packing.table =
      at::empty({packing.batch + steps}, at::TensorOptions(at::kLong).device(data.device()));
  if (data.device().is_cpu()) {
    std::copy(table.begin(), table.end(), packing.table.data_ptr<int64_t>());
  } else {
    packing.to_send = std::move(table);
  }
  return packing;
}

Tensor Packing::lengths() const {
  if (!table.defined()) return {};
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return table.as_strided({batch}, {1});
}

Tensor Packing::zero_state(int64_t hidden, const at::TensorOptions& options) {
  if (to_send.empty()) return at::zeros({batch, hidden}, options);
  return to_clear = at::empty({batch, hidden}, options);
}

Tensor Packing::to_steps(const Tensor& rows, bool reverse) {
  if (table.defined()) {
    const Saved what{*this, reverse, {true}};
    to_send.clear();
    to_clear.reset();
    return mapped<ToSteps>(rows, what)[0];
  }
  const Tensor dense = rows.reshape({steps, batch, rows.size(1)});
  return reverse ? dense.flip(0) : dense;
}

PackedStates Packing::to_rows(const Tensor& h, const Tensor& c, bool reverse,
                              bool want_cells) const {
  const bool ragged = table.defined();
  const Tensor both[] = {h, c};
  const Saved what{*this, reverse, {ragged, true, ragged && want_cells, true}};
  const variable_list moved = mapped<ToRows>(both, what);
  const auto dense = [&](const Tensor& states) {
    return (reverse ? states.flip(0) : states).flatten(0, 1);
  };
  PackedStates out{ragged ? moved[0] : dense(h), moved[ragged ? 1 : 0], {}, moved.back()};
  if (want_cells) out.c_rows = ragged ? moved[2] : dense(c);
  return out;
}

}  // namespace hdetach
