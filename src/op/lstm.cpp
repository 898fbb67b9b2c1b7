// The op: checks, allocation and autograd around a torch-free kernel.
#include "hdetach/lstm.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/cpu/flush_denormals.h"
#include "op/buffers.h"
#include "op/checks.h"
#include "op/cuda_stream.h"
#include "op/dispatch.h"
#include "op/ops.h"

namespace hdetach {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// LibTorch's threads, or the caller's alone where the work is too little to share: a parallel
// region costs some microseconds, and the backward pass opens two a chunk.
Workers workers_for(const LstmShape& shape) {
  constexpr double kLeastWork = 2e6;  // multiply-adds of one chunk, about 25 us of one core
  const double rows = std::min(static_cast<double>(shape.steps) * shape.batch, 256.0);
  const double work = rows * 4 * shape.hidden * (shape.input + shape.hidden);
  if (work < kLeastWork || at::get_num_threads() == 1) {
    return {1, [](int tasks, void (*task)(void*, int), void* context) {
              const FlushDenormals flush;
              for (int i = 0; i < tasks; ++i) task(context, i);
            }};
  }
  return {at::get_num_threads(), [](int tasks, void (*task)(void*, int), void* context) {
            at::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
              const FlushDenormals flush;
              for (int64_t i = begin; i < end; ++i) task(context, static_cast<int>(i));
            });
          }};
}

float* data(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

at::Tensor bytes(size_t count, const at::Tensor& like) {
  return recycled({static_cast<int64_t>(count)}, like.options().dtype(at::kByte));
}

Device kernel_device(const at::Tensor& tensor) {
  return tensor.device().is_cpu() ? Device::kCpu : Device::kCuda;
}

LstmShape shape_of(const LstmInputs& in) {
  return {in.steps(), in.batch(), in.input(), in.hidden()};
}

LstmArgs args_of(const LstmInputs& in, const Workers& workers) {
  return {shape_of(in), {data(in.w_ih), data(in.w_hh), data(in.b_ih), data(in.b_hh)},
          data(in.x),   data(in.h0),
          data(in.c0),  in.lengths.defined() ? in.lengths.data_ptr<int64_t>() : nullptr,
          workers,      current_stream()};
}

ScaleView view_of(const at::Tensor& scale) {
  if (!scale.defined()) return {nullptr, 0, 0};
  if (scale.dim() == 1) return {data(scale), 1, 0};
  return {data(scale), scale.size(1), 1};
}

struct ForwardResult {
  at::Tensor h, c, gates;  // gates undefined unless kept for a backward pass
};

ForwardResult run_forward(const Kernel& kernel, const LstmInputs& in, bool keep_gates) {
  const LstmShape shape = shape_of(in);
  ForwardResult out;
  const at::TensorOptions options = in.x.options();
  const c10::OptionalDeviceGuard guard(in.x.device());
  out.h = recycled({shape.steps, shape.batch, shape.hidden}, options);
  out.c = recycled({shape.steps, shape.batch, shape.hidden}, options);
  if (keep_gates) out.gates = recycled({shape.steps, shape.batch, 4, shape.hidden}, options);
  const Workers workers = workers_for(shape);
  const at::Tensor workspace = bytes(kernel.forward_workspace(shape, workers.count), in.x);

  ForwardArgs args{};
  static_cast<LstmArgs&>(args) = args_of(in, workers);
  args.h = data(out.h);
  args.c = data(out.c);
  args.gates = data(out.gates);
  args.workspace = workspace.data_ptr();
  kernel.forward(args);
  record_forward(kernel.name);
  return out;
}

struct Wanted {
  bool x, h0, c0, w_ih, w_hh, b_ih, b_hh;
};

// Gradients in the order of the op's first seven arguments; undefined where not wanted.
variable_list run_backward(const Kernel& kernel, const LstmInputs& in, const ForwardResult& saved,
                           const at::Tensor& dh, const at::Tensor& dc, const Wanted& wanted) {
  const LstmShape shape = shape_of(in);
  const c10::OptionalDeviceGuard guard(in.x.device());
  const auto like = [](bool want, const at::Tensor& t) {
    return want ? at::empty_like(t) : at::Tensor();
  };
  const at::Tensor dx = like(wanted.x, in.x);
  const at::Tensor dh0 = like(wanted.h0, in.h0), dc0 = like(wanted.c0, in.c0);
  const at::Tensor dw_ih = like(wanted.w_ih, in.w_ih), dw_hh = like(wanted.w_hh, in.w_hh);
  const at::Tensor db_ih = like(wanted.b_ih, in.b_ih), db_hh = like(wanted.b_hh, in.b_hh);
  const Workers workers = workers_for(shape);
  const at::Tensor workspace = bytes(kernel.backward_workspace(shape, workers.count), in.x);
  at::Tensor products;
  if (kernel.device == Device::kCpu || counting_products()) {
    products = at::zeros({}, in.x.options().dtype(at::kLong));
  }

  BackwardArgs args{};
  static_cast<LstmArgs&>(args) = args_of(in, workers);
  args.h = data(saved.h);
  args.c = data(saved.c);
  args.gates = data(saved.gates);
  args.h_scale = view_of(in.h_scale);
  args.c_scale = view_of(in.c_scale);
  args.dh = data(dh);
  args.dc = data(dc);
  args.dx = data(dx);
  args.dh0 = data(dh0);
  args.dc0 = data(dc0);
  args.dw_ih = data(dw_ih);
  args.dw_hh = data(dw_hh);
  args.db_ih = data(db_ih);
  args.db_hh = data(db_hh);
  args.workspace = workspace.data_ptr();
  args.recurrent_products = products.defined() ? products.data_ptr<int64_t>() : nullptr;
  kernel.backward(args);
  record_backward(kernel.name, products);
  return {dx, dh0, dc0, dw_ih, dw_hh, db_ih, db_hh};
}

// The first gradient as a differentiable function of everything: the reference's own graph.
variable_list differentiable_backward(const LstmInputs& in, const at::Tensor& dh,
                                      const at::Tensor& dc, const Wanted& wanted) {
  // Views cut the paths by which one argument may depend on another outside this op.
  const auto view = [](const at::Tensor& t) { return t.defined() ? t.view_as(t) : t; };
  const variable_list args{view(in.x),    view(in.h0),   view(in.c0),  view(in.w_ih),
                           view(in.w_hh), view(in.b_ih), view(in.b_hh)};
  const bool want[7] = {wanted.x,    wanted.h0,   wanted.c0,  wanted.w_ih,
                        wanted.w_hh, wanted.b_ih, wanted.b_hh};
  const auto [h, c] = lstm_reference(args[0], args[1], args[2], args[3], args[4], args[5], args[6],
                                     in.h_scale, in.c_scale, in.lengths);
  variable_list outputs, output_grads, inputs;
  if (dh.defined()) outputs.push_back(h), output_grads.push_back(dh);
  if (dc.defined()) outputs.push_back(c), output_grads.push_back(dc);
  for (int i = 0; i < 7; ++i) {
    if (want[i]) inputs.push_back(args[i]);
  }
  const variable_list grads = torch::autograd::grad(outputs, inputs, output_grads,
                                                    /*retain_graph=*/true, /*create_graph=*/true,
                                                    /*allow_unused=*/true);
  variable_list all(7);
  for (int i = 0, next = 0; i < 7; ++i) {
    if (want[i]) all[i] = grads[next++];
  }
  return all;
}

// What steers the backward pass and has no gradient of its own.
struct Steering {
  const Kernel* kernel;
  at::Tensor h_scale, c_scale, lengths;
};

struct LstmFunction : torch::autograd::Function<LstmFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& h0,
                               const at::Tensor& c0, const at::Tensor& w_ih, const at::Tensor& w_hh,
                               const OptionalTensor& b_ih, const OptionalTensor& b_hh,
                               const Steering& steering) {
    const LstmInputs in{x,
                        h0,
                        c0,
                        w_ih,
                        w_hh,
                        b_ih.value_or(at::Tensor()),
                        b_hh.value_or(at::Tensor()),
                        steering.h_scale,
                        steering.c_scale,
                        steering.lengths};
    const ForwardResult out = run_forward(*steering.kernel, in, /*keep_gates=*/true);
    context->save_for_backward({in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.h_scale,
                                in.c_scale, in.lengths, out.h, out.c, out.gates});
    // The kernel that made the saved state also reads it, whatever the environment says later.
    context->saved_data["kernel"] = std::string(steering.kernel->name);
    context->set_materialize_grads(false);
    return {out.h, out.c};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const LstmInputs in{saved[0], saved[1], saved[2], saved[3], saved[4],
                        saved[5], saved[6], saved[7], saved[8], saved[9]};
    size_t edge = 5;  // absent biases have no edge
    const auto wants = [&](size_t i) { return context->needs_input_grad(i); };
    Wanted wanted{wants(0), wants(1), wants(2), wants(3), wants(4), false, false};
    if (in.b_ih.defined()) wanted.b_ih = wants(edge++);
    if (in.b_hh.defined()) wanted.b_hh = wants(edge++);

    variable_list result(8);  // the eighth argument, the steering, has no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;
    variable_list found;
    if (c10::GradMode::is_enabled()) {
      found = differentiable_backward(in, grads[0], grads[1], wanted);
    } else {
      const auto flat = [](const at::Tensor& t) { return t.defined() ? t.contiguous() : t; };
      const Kernel* kernel = find_kernel(context->saved_data["kernel"].toStringRef().c_str());
      found = run_backward(*kernel, in, {saved[10], saved[11], saved[12]}, flat(grads[0]),
                           flat(grads[1]), wanted);
    }
    for (int i = 0; i < 7; ++i) result[i] = found[i];
    return result;
  }
};

bool any_requires_grad(const LstmInputs& in) {
  for (const at::Tensor* t : {&in.x, &in.h0, &in.c0, &in.w_ih, &in.w_hh, &in.b_ih, &in.b_hh}) {
    if (t->defined() && t->requires_grad()) return true;
  }
  return false;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> lstm_impl(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  const LstmInputs in = check_lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths);
  const Kernel* kernel = kernel_of_call(kernel_device(in.x), shape_of(in));
  if (kernel == nullptr || in.x.scalar_type() != at::kFloat) {
    record_forward(nullptr);
    return lstm_reference(in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.h_scale,
                          in.c_scale, in.lengths);
  }
  if (!c10::GradMode::is_enabled() || !any_requires_grad(in)) {
    const ForwardResult out = run_forward(*kernel, in, /*keep_gates=*/false);
    return {out.h, out.c};
  }
  const auto optional = [](const at::Tensor& t) {
    return t.defined() ? OptionalTensor(t) : OptionalTensor();
  };
  const variable_list out =
      LstmFunction::apply(in.x, in.h0, in.c0, in.w_ih, in.w_hh, optional(in.b_ih),
                          optional(in.b_hh), Steering{kernel, in.h_scale, in.c_scale, in.lengths});
  return {out[0], out[1]};
}

std::tuple<at::Tensor, at::Tensor> lstm_cell_impl(
    const at::Tensor& x, const at::Tensor& h, const at::Tensor& c, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale) {
  TORCH_CHECK(x.defined(), "[lstm_cell] x is undefined; it must be [B,I].");
  TORCH_CHECK(x.dim() == 2, "[lstm_cell] x has shape ", x.sizes(), "; it must be [B,I].");
  const auto one_step = [](const char* name, const OptionalTensor& scale) -> OptionalTensor {
    if (!scale.has_value() || !scale->defined()) return {};
    TORCH_CHECK(scale->dim() <= 1, "[lstm_cell] ", name, " has shape ", scale->sizes(),
                "; it must be [] (one scale for the batch) or [B] (one a row).");
    return scale->unsqueeze(0);
  };
  const auto [all_h, all_c] = lstm(x.unsqueeze(0), h, c, w_ih, w_hh, b_ih, b_hh,
                                   one_step("h_scale", h_scale), one_step("c_scale", c_scale));
  return {all_h[0], all_c[0]};
}

std::tuple<at::Tensor, at::Tensor> lstm(const at::Tensor& x, const at::Tensor& h0,
                                        const at::Tensor& c0, const at::Tensor& w_ih,
                                        const at::Tensor& w_hh, const OptionalTensor& b_ih,
                                        const OptionalTensor& b_hh, const OptionalTensor& h_scale,
                                        const OptionalTensor& c_scale,
                                        const OptionalTensor& lengths) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("hdetach::lstm", "")
                             .typed<decltype(lstm_impl)>();
  return op.call(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths);
}

std::tuple<at::Tensor, at::Tensor> lstm_cell(const at::Tensor& x, const at::Tensor& h,
                                             const at::Tensor& c, const at::Tensor& w_ih,
                                             const at::Tensor& w_hh, const OptionalTensor& b_ih,
                                             const OptionalTensor& b_hh,
                                             const OptionalTensor& h_scale,
                                             const OptionalTensor& c_scale) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("hdetach::lstm_cell", "")
                             .typed<decltype(lstm_cell_impl)>();
  return op.call(x, h, c, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale);
}

}  // namespace hdetach
