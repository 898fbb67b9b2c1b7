#include "models/attend.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/cuda/attend.h"
#include "op/cuda_stream.h"

namespace hdetach {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// On any device, by LibTorch's own operations.
Look attend_by_parts(const at::Tensor& words, const at::Tensor& query, Sight& sight) {
  const int64_t rows = query.size(0);
  if (rows < sight.projected.size(0)) {
    for (at::Tensor* part : {&sight.features, &sight.projected, &sight.weight}) {
      *part = part->narrow(0, 0, rows);
    }
  }
  const at::Tensor match = (sight.projected + query.unsqueeze(1)).tanh_();
  const at::Tensor score = at::bmm(match, sight.weight.unsqueeze(2)).squeeze(2);
  const at::Tensor attention = at::softmax(score, 1);
  const at::Tensor context = at::bmm(attention.unsqueeze(1), sight.features).squeeze(1);
  return {at::cat({words, context}, 1), attention.detach()};
}

const float* data(const at::Tensor& tensor) { return tensor.data_ptr<float>(); }

cuda::AttendShape shape_of(const at::Tensor& query, const at::Tensor& features, int64_t embedding) {
  return {query.size(0), embedding, features.size(1), query.size(1), features.size(2)};
}

struct AttendFunction : torch::autograd::Function<AttendFunction> {
  // Returns x, the attention, projected and weight; the last two as they came, for the next step.
  static variable_list forward(AutogradContext* context, const at::Tensor& words,
                               const at::Tensor& query, const at::Tensor& projected,
                               const at::Tensor& weight, const at::Tensor& features) {
    const c10::OptionalDeviceGuard guard(query.device());
    cuda::AttendForward args{};
    args.shape = shape_of(query, features, words.size(1));
    const at::Tensor x =
        at::empty({args.shape.rows, args.shape.embedding + args.shape.channels}, query.options());
    const at::Tensor attention =
        at::empty({args.shape.rows, args.shape.positions}, query.options());
    args.words = data(words);
    args.query = data(query);
    args.projected = data(projected);
    args.weight = data(weight);
    args.features = data(features);
    args.x = x.data_ptr<float>();
    args.attention = attention.data_ptr<float>();
    cuda::attend_forward(args, current_stream());
    context->save_for_backward({query, projected, weight, features, attention});
    context->mark_non_differentiable({attention});
    context->set_materialize_grads(false);
    return {x, attention, projected, weight};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    TORCH_CHECK(!c10::GradMode::is_enabled(),
                "[attend] has no second derivative on a GPU; use create_graph=false.");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &projected = saved[1], &weight = saved[2],
                     &features = saved[3], &attention = saved[4];
    if (!grads[0].defined()) return {{}, {}, grads[2], grads[3], {}};
    const c10::OptionalDeviceGuard guard(query.device());
    const at::Tensor dx = grads[0].contiguous();
    const at::Tensor dquery = at::empty_like(query);
    // What the next step's backward pass made and nobody else has: added to in place.
    const at::Tensor dprojected = grads[2].defined() ? grads[2] : at::zeros_like(projected);
    const at::Tensor dweight = grads[3].defined() ? grads[3] : at::zeros_like(weight);
    cuda::AttendBackward args{};
    const int64_t embedding = dx.size(1) - features.size(2);
    args.shape = shape_of(query, features, embedding);
    args.query = data(query);
    args.projected = data(projected);
    args.weight = data(weight);
    args.features = data(features);
    args.attention = data(attention);
    args.dx = data(dx);
    args.dquery = dquery.data_ptr<float>();
    args.dprojected = dprojected.data_ptr<float>();
    args.dweight = dweight.data_ptr<float>();
    cuda::attend_backward(args, current_stream());
    return {dx.narrow(1, 0, embedding), dquery, dprojected, dweight, {}};
  }
};

}  // namespace

Look attend(const at::Tensor& words, const at::Tensor& query, Sight& sight) {
  if (!query.device().is_cuda() || query.scalar_type() != at::kFloat) {
    return attend_by_parts(words, query, sight);
  }
  for (at::Tensor* part : {&sight.features, &sight.projected, &sight.weight}) {
    *part = part->contiguous();
  }
  const variable_list out = AttendFunction::apply(words.contiguous(), query.contiguous(),
                                                  sight.projected, sight.weight, sight.features);
  sight.projected = out[2];
  sight.weight = out[3];
  return {out[0], out[1]};
}

}  // namespace hdetach
