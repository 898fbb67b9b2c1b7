// hdetach::lstm_forward and hdetach::lstm_backward: one call of a kernel each, with its memory. On
// the meta device, and where a trace stands in for tensors, the shapes alone.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <string>

#include "kernels/cpu/flush_denormals.h"
#include "kernels/shape_text.h"
#include "op/buffers.h"
#include "op/checks.h"
#include "op/cuda_stream.h"
#include "op/dispatch.h"
#include "op/ops.h"
#include "op/sizes.h"

namespace hdetach {
namespace {

using at::Tensor;

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

float* data(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }

Tensor bytes(size_t count, const Tensor& like) {
  return recycled({static_cast<int64_t>(count)}, like.options().dtype(at::kByte));
}

LstmArgs args_of(const LstmInputs& in, const Workers& workers) {
  return {shape_of(in), {data(in.w_ih), data(in.w_hh), data(in.b_ih), data(in.b_hh)},
          data(in.x),   data(in.h0),
          data(in.c0),  in.lengths.defined() ? in.lengths.data_ptr<int64_t>() : nullptr,
          workers,      in.x.is_cuda() ? current_stream() : nullptr};
}

ScaleView view_of(const Tensor& scale) {
  if (!scale.defined()) return {nullptr, 0, 0};
  if (scale.dim() == 1) return {data(scale), 1, 0};
  return {data(scale), scale.size(1), 1};
}

// The arguments of a call. Who names a kernel is hdetach::lstm, which has looked at their values.
LstmInputs inputs_of_call(const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& w_ih,
                          const Tensor& w_hh, const OptionalTensor& b_ih,
                          const OptionalTensor& b_hh, const OptionalTensor& h_scale,
                          const OptionalTensor& c_scale, const OptionalTensor& lengths,
                          c10::string_view kernel) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "[lstm] x is ", x.scalar_type(),
              "; the kernels take float32. hdetach::lstm takes float64 as well.");
  return (kernel.empty() ? check_lstm : check_shapes)(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale,
                                                      c_scale, lengths);
}

const Kernel& kernel_named(c10::string_view name, const LstmInputs& in) {
  const Device device = in.x.device().is_cpu() ? Device::kCpu : Device::kCuda;
  const std::string text(name.data(), name.size());
  const LstmShape shape = shape_of(in);
  const Kernel* kernel = text.empty() ? kernel_of_call(device, shape) : find_kernel(text.c_str());
  const bool found = kernel != nullptr && kernel->device == device;
  const char* const reason = found ? refusal(*kernel, shape) : nullptr;
  TORCH_CHECK(reason == nullptr, "[lstm] kernel '", text, "' cannot be used for ", to_text(shape),
              ": ", reason, "; hdetach::lstm has a reference to fall back on.");
  TORCH_CHECK(found, "[lstm] no kernel", text.empty() ? "" : " '" + text + "'", " for ",
              to_text(shape), " on ", in.x.device(),
              "; hdetach::lstm has a reference to fall back on.");
  return *kernel;
}

Tensor meta(std::initializer_list<Size> sizes, const Tensor& like) {
#if TORCH_VERSION_MAJOR >= 2
  return at::empty_symint(sizes, like.options());
#else
  return at::empty(sizes, like.options());
#endif
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm_forward_kernel(
    const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& w_ih, const Tensor& w_hh,
    const OptionalTensor& b_ih, const OptionalTensor& b_hh, const OptionalTensor& lengths,
    bool keep_gates, c10::string_view kernel_name) {
  const LstmInputs in =
      inputs_of_call(x, h0, c0, w_ih, w_hh, b_ih, b_hh, {}, {}, lengths, kernel_name);
  const Kernel& kernel = kernel_named(kernel_name, in);
  const LstmShape shape = shape_of(in);
  const at::TensorOptions options = in.x.options();
  const c10::OptionalDeviceGuard guard(in.x.device());
  const Tensor h = recycled({shape.steps, shape.batch, shape.hidden}, options);
  const Tensor c = recycled({shape.steps, shape.batch, shape.hidden}, options);
  Tensor gates;
  if (keep_gates) gates = recycled({shape.steps, shape.batch, 4, shape.hidden}, options);
  const Workers workers = workers_for(shape);
  const Tensor workspace = bytes(kernel.forward_workspace(shape, workers.count), in.x);

  ForwardArgs args{};
  static_cast<LstmArgs&>(args) = args_of(in, workers);
  args.h = data(h);
  args.c = data(c);
  args.gates = data(gates);
  args.workspace = workspace.data_ptr();
  kernel.forward(args);
  record_forward(kernel.name);
  return {h, c, gates};
}

LstmGradients lstm_backward_kernel(const OptionalTensor& dh, const OptionalTensor& dc,
                                   const Tensor& x, const Tensor& h0, const Tensor& c0,
                                   const Tensor& w_ih, const Tensor& w_hh,
                                   const OptionalTensor& b_ih, const OptionalTensor& b_hh,
                                   const OptionalTensor& h_scale, const OptionalTensor& c_scale,
                                   const OptionalTensor& lengths, const Tensor& h, const Tensor& c,
                                   const Tensor& gates, Wanted wanted,
                                   c10::string_view kernel_name) {
  const LstmInputs in =
      inputs_of_call(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths, kernel_name);
  const Kernel& kernel = kernel_named(kernel_name, in);
  const LstmShape shape = shape_of(in);
  const int64_t count = shape.steps * shape.batch * shape.hidden;
  const auto states = [&](const char* name, const OptionalTensor& t, int64_t gates) {
    if (!t.has_value() || !t->defined()) return Tensor();
    TORCH_CHECK(t->numel() == count * gates && t->scalar_type() == at::kFloat &&
                    t->device() == in.x.device(),
                "[lstm] ", name, " is ", t->scalar_type(), " of shape ", t->sizes(), " on ",
                t->device(), "; it does not belong to x of shape ", in.x.sizes(), " on ",
                in.x.device(), ".");
    return t->contiguous();
  };
  const Tensor flat_dh = states("dh", dh, 1), flat_dc = states("dc", dc, 1);
  const Tensor saved_h = states("h", h, 1), saved_c = states("c", c, 1);
  const Tensor saved_gates = states("gates", gates, 4);

  const c10::OptionalDeviceGuard guard(in.x.device());
  const auto like = [](bool want, const Tensor& t) {
    return want && t.defined() ? at::empty_like(t) : Tensor();
  };
  LstmGradients grads{like(wanted[0], in.x),    like(wanted[1], in.h0),   like(wanted[2], in.c0),
                      like(wanted[3], in.w_ih), like(wanted[4], in.w_hh), like(wanted[5], in.b_ih),
                      like(wanted[6], in.b_hh)};
  const Workers workers = workers_for(shape);
  const Tensor workspace = bytes(kernel.backward_workspace(shape, workers.count), in.x);
  Tensor products;
  if (kernel.device == Device::kCpu || counting_products()) {
    products = at::zeros({}, in.x.options().dtype(at::kLong));
  }

  BackwardArgs args{};
  static_cast<LstmArgs&>(args) = args_of(in, workers);
  args.h = data(saved_h);
  args.c = data(saved_c);
  args.gates = data(saved_gates);
  args.h_scale = view_of(in.h_scale);
  args.c_scale = view_of(in.c_scale);
  args.dh = data(flat_dh);
  args.dc = data(flat_dc);
  args.dx = data(std::get<0>(grads));
  args.dh0 = data(std::get<1>(grads));
  args.dc0 = data(std::get<2>(grads));
  args.dw_ih = data(std::get<3>(grads));
  args.dw_hh = data(std::get<4>(grads));
  args.db_ih = data(std::get<5>(grads));
  args.db_hh = data(std::get<6>(grads));
  args.workspace = workspace.data_ptr();
  args.recurrent_products = products.defined() ? products.data_ptr<int64_t>() : nullptr;
  kernel.backward(args);
  record_backward(kernel.name, products);
  return grads;
}

std::tuple<Tensor, Tensor, Tensor> lstm_forward_meta(const Tensor& x, const Tensor& h0,
                                                     const Tensor&, const Tensor&, const Tensor&,
                                                     const OptionalTensor&, const OptionalTensor&,
                                                     const OptionalTensor&, bool keep_gates,
                                                     c10::string_view) {
  const Size steps = size_of(x, 0), batch = size_of(x, 1), hidden = size_of(h0, 1);
  return {meta({steps, batch, hidden}, x), meta({steps, batch, hidden}, x),
          keep_gates ? meta({steps, batch, 4, hidden}, x) : Tensor()};
}

LstmGradients lstm_backward_meta(const OptionalTensor&, const OptionalTensor&, const Tensor& x,
                                 const Tensor& h0, const Tensor& c0, const Tensor& w_ih,
                                 const Tensor& w_hh, const OptionalTensor& b_ih,
                                 const OptionalTensor& b_hh, const OptionalTensor&,
                                 const OptionalTensor&, const OptionalTensor&, const Tensor&,
                                 const Tensor&, const Tensor&, Wanted wanted, c10::string_view) {
  const auto like = [](bool want, const OptionalTensor& t) {
    return want && t && t->defined() ? at::empty_like(*t, at::MemoryFormat::Contiguous) : Tensor();
  };
  return {like(wanted[0], x),    like(wanted[1], h0),   like(wanted[2], c0),  like(wanted[3], w_ih),
          like(wanted[4], w_hh), like(wanted[5], b_ih), like(wanted[6], b_hh)};
}

}  // namespace hdetach
