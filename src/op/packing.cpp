#include "op/packing.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/packing.h"
#include "op/cuda_stream.h"
#include "op/host_memory.h"
#include "op/ops.h"
#include "op/sizes.h"

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
  const int64_t row_work = std::max<int64_t>(data.width, 1);
  at::parallel_for(0, batch.steps, std::max<int64_t>(32768 / (row_work * batch.batch), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t t = begin; t < end; ++t) {
                       for (int64_t b = 0; b < batch.batch; ++b) {
                         if (to_steps) {
                           move_row<T, true>(batch, data, t, b, 0, 1);
                         } else {
                           move_row<T, false>(batch, data, t, b, 0, 1);
                         }
                       }
                     }
                   });
}

// Contiguous tensors, each of which may be undefined but for steps.
void move_packed(const Packing& packing, bool reverse, const Tensor& steps, const Tensor& rows,
                 const Tensor& last, bool to_steps) {
  const PackedBatch batch{
      packing.steps,          packing.batch, numbers(packing.lengths), numbers(packing.first_row),
      numbers(packing.order), reverse};
  const c10::OptionalDeviceGuard guard(steps.device());
  AT_DISPATCH_FLOATING_TYPES(steps.scalar_type(), "packed sequence", [&] {
    const PackedData<scalar_t> data{values<scalar_t>(steps), values<scalar_t>(rows),
                                    values<scalar_t>(last), steps.size(2)};
    if (steps.device().is_cpu()) {
      move_packed_cpu(batch, data, to_steps);
    } else {
#ifdef HDETACH_WITH_CUDA
      move_packed_cuda(batch, data, to_steps, current_stream());
#endif
    }
  });
}

void save(AutogradContext* context, const Packing& packing, bool reverse) {
  context->save_for_backward({packing.lengths, packing.first_row, packing.order});
  context->saved_data["size"] = std::vector<int64_t>{packing.steps, packing.batch, packing.rows};
  context->saved_data["reverse"] = reverse;
  context->set_materialize_grads(false);
}

std::pair<Packing, bool> saved(AutogradContext* context) {
  const variable_list tensors = context->get_saved_variables();
  const std::vector<int64_t> size = context->saved_data["size"].toIntVector();
  return {Packing{size[0], size[1], size[2], tensors[0], tensors[1], tensors[2]},
          context->saved_data["reverse"].toBool()};
}

// Two linear maps, each the other's transpose. Of rows and last either may be left out.
struct ToSteps : torch::autograd::Function<ToSteps> {
  static Tensor forward(AutogradContext* context, const OptionalTensor& rows,
                        const OptionalTensor& last, const Packing& packing, bool reverse);
  static variable_list backward(AutogradContext* context, const variable_list& grads);
};

struct ToRows : torch::autograd::Function<ToRows> {
  static variable_list forward(AutogradContext* context, const Tensor& steps,
                               const Packing& packing, bool reverse, bool want_rows,
                               bool want_last);
  static variable_list backward(AutogradContext* context, const variable_list& grads);
};

Tensor ToSteps::forward(AutogradContext* context, const OptionalTensor& rows,
                        const OptionalTensor& last, const Packing& packing, bool reverse) {
  const Tensor given_rows = rows.has_value() ? rows->contiguous() : Tensor();
  const Tensor given_last = last.has_value() ? last->contiguous() : Tensor();
  const Tensor& any = given_rows.defined() ? given_rows : given_last;
  const Tensor steps = at::empty({packing.steps, packing.batch, any.size(-1)}, any.options());
  move_packed(packing, reverse, steps, given_rows, given_last, /*to_steps=*/true);
  save(context, packing, reverse);
  context->saved_data["has_rows"] = given_rows.defined();
  context->saved_data["has_last"] = given_last.defined();
  return steps;
}

variable_list ToSteps::backward(AutogradContext* context, const variable_list& grads) {
  if (!grads[0].defined()) return variable_list(4);
  const auto [packing, reverse] = saved(context);
  const bool has_rows = context->saved_data["has_rows"].toBool();
  const bool has_last = context->saved_data["has_last"].toBool();
  const variable_list out = ToRows::apply(grads[0], packing, reverse, has_rows, has_last);
  return {has_rows ? out[0] : Tensor(), has_last ? out[has_rows] : Tensor(), Tensor(), Tensor()};
}

variable_list ToRows::forward(AutogradContext* context, const Tensor& steps, const Packing& packing,
                              bool reverse, bool want_rows, bool want_last) {
  const int64_t width = steps.size(2);
  Tensor rows, last;
  variable_list out;
  if (want_rows) out.push_back(rows = at::empty({packing.rows, width}, steps.options()));
  if (want_last) out.push_back(last = at::empty({1, packing.batch, width}, steps.options()));
  move_packed(packing, reverse, steps.contiguous(), rows, last, /*to_steps=*/false);
  save(context, packing, reverse);
  context->saved_data["has_rows"] = want_rows;
  return out;
}

variable_list ToRows::backward(AutogradContext* context, const variable_list& grads) {
  const auto [packing, reverse] = saved(context);
  const size_t has_rows = context->saved_data["has_rows"].toBool() ? 1 : 0;
  const Tensor rows = has_rows == 1 ? grads[0] : Tensor();
  const Tensor last = grads.size() > has_rows ? grads[has_rows] : Tensor();
  variable_list result(5);
  if (rows.defined() || last.defined()) {
    result[0] = ToSteps::apply(optional(rows), optional(last), packing, reverse);
  }
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
  for (int64_t b = 0; order.device().is_cpu() && b < batch; ++b) {
    const int64_t place = order.data_ptr<int64_t>()[b];
    TORCH_CHECK(place >= 0 && place < batch, "[LSTM] sorted_indices[", b, "] of packed_input is ",
                place, "; it must be in 0..B-1 with B=", batch, ".");
  }
  return order;
}

}  // namespace

Packing Packing::of(const Tensor& data, const Tensor& batch_sizes, const Tensor& sorted_indices) {
  TORCH_CHECK(batch_sizes.device().is_cpu() && !is_traced(batch_sizes),
              "[LSTM] batch_sizes of packed_input must be numbers on the CPU, to be read now; "
              "torch.compile cannot take a packed sequence.");
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

  Packing packing{steps, sizes[0], stored, {}, {}, checked_order(sorted_indices, sizes[0], data)};
  if (stored == steps * packing.batch) return packing;
  // Both in one copy, which nobody waits for.
  const Tensor table = host_memory({packing.batch + steps}, at::kLong, data.device());
  int64_t* length = table.data_ptr<int64_t>();
  int64_t* row = length + packing.batch;
  row[0] = 0;
  for (int64_t t = 0; t < steps; ++t) {
    std::fill(length, length + sizes[t], t + 1);
    if (t > 0) row[t] = row[t - 1] + sizes[t - 1];
  }
  const Tensor there = table.to(data.device(), at::kLong, /*non_blocking=*/true);
  packing.lengths = there.narrow(0, 0, packing.batch);
  packing.first_row = there.narrow(0, packing.batch, steps);
  return packing;
}

Tensor Packing::to_steps(const Tensor& rows, bool reverse) const {
  if (lengths.defined()) return ToSteps::apply(rows, OptionalTensor(), *this, reverse);
  const Tensor dense = rows.reshape({steps, batch, rows.size(1)});
  return reverse ? dense.flip(0) : dense;
}

std::tuple<Tensor, Tensor> Packing::to_rows(const Tensor& states, bool reverse,
                                            bool want_rows) const {
  const bool move = want_rows && lengths.defined();
  const variable_list out = ToRows::apply(states, *this, reverse, move, /*want_last=*/true);
  if (move || !want_rows) return {move ? out[0] : Tensor(), out.back()};
  return {(reverse ? states.flip(0) : states).flatten(0, 1), out.back()};
}

}  // namespace hdetach
