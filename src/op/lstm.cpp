// The op: checks and autograd around one forward and one backward call of a kernel.
#include "hdetach/lstm.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "op/checks.h"
#include "op/dispatch.h"
#include "op/ops.h"
#include "op/sizes.h"
#include "op/tangents.h"

namespace hdetach {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename Signature>
c10::TypedOperatorHandle<Signature> find_op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// Through the dispatcher, so that a trace records these two and looks no deeper.
std::tuple<at::Tensor, at::Tensor, at::Tensor> call_forward(const LstmInputs& in, bool keep_gates,
                                                            const std::string& kernel) {
  static const auto op = find_op<decltype(lstm_forward_kernel)>("hdetach::lstm_forward");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return op.call(in.x, in.h0, in.c0, in.w_ih, in.w_hh, optional(in.b_ih), optional(in.b_hh),
                 optional(in.lengths), keep_gates, kernel);
}

variable_list call_backward(const LstmInputs& in, const at::Tensor& h, const at::Tensor& c,
                            const at::Tensor& gates, const at::Tensor& dh, const at::Tensor& dc,
                            const Wanted& wanted, const std::string& kernel) {
  static const auto op = find_op<decltype(lstm_backward_kernel)>("hdetach::lstm_backward");
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  auto [dx, dh0, dc0, dw_ih, dw_hh, db_ih, db_hh] =
      op.call(optional(dh), optional(dc), in.x, in.h0, in.c0, in.w_ih, in.w_hh, optional(in.b_ih),
              optional(in.b_hh), optional(in.h_scale), optional(in.c_scale), optional(in.lengths),
              h, c, gates, wanted, kernel);
  return {dx, dh0, dc0, dw_ih, dw_hh, db_ih, db_hh};
}

// The gradient by the reference's own operations, on which torch can build: with `create_graph` a
// differentiable function of everything, else with the tangents of what arrives.
variable_list reference_backward(const LstmInputs& in, const at::Tensor& dh, const at::Tensor& dc,
                                 const Wanted& wanted, bool create_graph) {
  const c10::impl::ExcludeDispatchKeyGuard full_precision(c10::autocast_dispatch_keyset);
  const c10::AutoGradMode with_graph(true);
  // Views cut the paths by which one argument may depend on another outside this op. A saved
  // argument requires no gradient any more where a functorch transform around it has ended.
  variable_list args{in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh};
  for (int i = 0; i < 7; ++i) {
    if (!args[i].defined()) continue;
    args[i] = create_graph ? args[i].view_as(args[i]) : args[i].detach();
    if (wanted[i] && !args[i].requires_grad()) args[i].requires_grad_();
  }
  const auto [h, c] = lstm_reference(args[0], args[1], args[2], args[3], args[4], args[5], args[6],
                                     in.h_scale, in.c_scale, in.lengths);
  variable_list outputs, output_grads, inputs;
  if (dh.defined()) outputs.push_back(h), output_grads.push_back(dh);
  if (dc.defined()) outputs.push_back(c), output_grads.push_back(dc);
  for (int i = 0; i < 7; ++i) {
    if (wanted[i]) inputs.push_back(args[i]);
  }
  const variable_list grads = torch::autograd::grad(outputs, inputs, output_grads,
                                                    /*retain_graph=*/create_graph, create_graph,
                                                    /*allow_unused=*/true);
  variable_list all(7);
  for (int i = 0, next = 0; i < 7; ++i) {
    if (!wanted[i]) continue;
    all[i] = grads[next++];
    // Behind a detached step there is no path; a kernel gives zeros there.
    if (!all[i].defined()) all[i] = at::zeros_like(args[i]);
  }
  return all;
}

// What steers the backward pass and has no gradient of its own.
struct Steering {
  std::string kernel;  // empty in a trace: the two calls choose when they run
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
    // Function turned it off, also for a functorch transform around this one, which must see that
    // this op has no gradient there (library.cpp).
    const c10::AutoGradMode as_called(true);
    const auto [h, c, gates] = call_forward(in, /*keep_gates=*/true, steering.kernel);
    context->save_for_backward({in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.h_scale,
                                in.c_scale, in.lengths, h, c, gates});
    // The kernel that made the saved state also reads it, whatever the environment says later.
    context->saved_data["kernel"] = steering.kernel;
    context->set_materialize_grads(false);
    return {h, c};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const LstmInputs in{saved[0], saved[1], saved[2], saved[3], saved[4],
                        saved[5], saved[6], saved[7], saved[8], saved[9]};
    size_t edge = 5;  // absent biases have no edge
    const auto wants = [&](size_t i) { return context->needs_input_grad(i); };
    Wanted wanted{wants(0), wants(1), wants(2), wants(3), wants(4), false, false};
    if (in.b_ih.defined()) wanted[5] = wants(edge++);
    if (in.b_hh.defined()) wanted[6] = wants(edge++);

    variable_list result(8);  // the eighth argument, the steering, has no gradient
    if (!grads[0].defined() && !grads[1].defined()) return result;
    variable_list found;
    const bool create_graph = c10::GradMode::is_enabled();
    const auto is_dual = [](const at::Tensor& t) { return t.defined() && has_tangent(t); };
    if (create_graph || is_dual(grads[0]) || is_dual(grads[1])) {
      found = reference_backward(in, grads[0], grads[1], wanted, create_graph);
    } else {
      found = call_backward(in, saved[10], saved[11], saved[12], grads[0], grads[1], wanted,
                            context->saved_data["kernel"].toStringRef());
    }
    for (int i = 0; i < 7; ++i) result[i] = found[i];
    return result;
  }
};

template <typename Has>
bool any_input(const LstmInputs& in, const Has& has) {
  for (const at::Tensor* t : {&in.x, &in.h0, &in.c0, &in.w_ih, &in.w_hh, &in.b_ih, &in.b_hh}) {
    if (t->defined() && has(*t)) return true;
  }
  return false;
}

bool any_requires_grad(const LstmInputs& in) {
  return any_input(in, [](const at::Tensor& t) { return t.requires_grad(); });
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> lstm_impl(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  const LstmInputs in = check_lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths);
  // Sizes may be symbols in a trace: whether there is a kernel is asked, which one is not.
  const bool traced = is_traced(in.x);
  const Device device = in.x.device().is_cuda() ? Device::kCuda : Device::kCpu;
  const Kernel* kernel = kernel_of_call(device, traced ? kAnyShape : shape_of(in));
  // A kernel would lose the tangents of forward-mode differentiation; the reference's own
  // operations carry them.
  if (kernel == nullptr || in.x.scalar_type() != at::kFloat || any_input(in, has_tangent)) {
    record_forward(nullptr);
    return lstm_reference(in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.h_scale,
                          in.c_scale, in.lengths);
  }
  const std::string name = traced ? "" : kernel->name;
  if (!c10::GradMode::is_enabled() || !any_requires_grad(in)) {
    const auto [h, c, gates] = call_forward(in, /*keep_gates=*/false, name);
    return {h, c};
  }
  const variable_list out =
      LstmFunction::apply(in.x, in.h0, in.c0, in.w_ih, in.w_hh, optional(in.b_ih),
                          optional(in.b_hh), Steering{name, in.h_scale, in.c_scale, in.lengths});
  return {out[0], out[1]};
}

std::tuple<at::Tensor, at::Tensor> lstm_cell_impl(
    const at::Tensor& x, const at::Tensor& h, const at::Tensor& c, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale) {
  TORCH_CHECK(x.defined(), "[lstm_cell] x is undefined; it must be [B,I].");
  TORCH_CHECK(x.dim() == 2, "[lstm_cell] x has shape ", sizes_of(x), "; it must be [B,I].");
  const auto one_step = [](const char* name, const OptionalTensor& scale) -> OptionalTensor {
    if (!scale.has_value() || !scale->defined()) return {};
    TORCH_CHECK(scale->dim() <= 1, "[lstm_cell] ", name, " has shape ", sizes_of(*scale),
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
  static const auto op = find_op<decltype(lstm_impl)>("hdetach::lstm");
  return op.call(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths);
}

std::tuple<at::Tensor, at::Tensor> lstm_cell(const at::Tensor& x, const at::Tensor& h,
                                             const at::Tensor& c, const at::Tensor& w_ih,
                                             const at::Tensor& w_hh, const OptionalTensor& b_ih,
                                             const OptionalTensor& b_hh,
                                             const OptionalTensor& h_scale,
                                             const OptionalTensor& c_scale) {
  static const auto op = find_op<decltype(lstm_cell_impl)>("hdetach::lstm_cell");
  return op.call(x, h, c, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale);
}

}  // namespace hdetach
