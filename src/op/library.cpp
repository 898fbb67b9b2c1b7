// Every operator that Python and TorchScript see, by its schema.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hdetach/backend.h"
#include "hdetach/gradient_scales.h"
#include "op/ops.h"

namespace hdetach {
namespace {

// One of two names; the error lists both.
bool is_second(const char* argument, c10::string_view value, const char* first,
               const char* second) {
  const std::string name(value.data(), value.size());
  TORCH_CHECK(name == first || name == second, "[sample_scales] ", argument, " is '", name,
              "'; it must be '", first, "' or '", second, "'.");
  return name == second;
}

// hdetach::sample, its generator passed in and out. A list without tensors comes back empty.
std::tuple<std::vector<at::Tensor>, std::vector<at::Tensor>, int64_t> sample_scales(
    int64_t steps, int64_t batch, int64_t layers, double detach, c10::string_view path,
    c10::string_view mode, c10::string_view layers_policy, bool per_sample, int64_t seed,
    int64_t drawn) {
  GradientPolicy policy;
  policy.detach = detach;
  policy.path = is_second("path", path, "hidden", "cell") ? Path::kCell : Path::kHidden;
  policy.mode = is_second("mode", mode, "detach", "damp") ? Mode::kDamp : Mode::kDetach;
  policy.layers = is_second("layers_policy", layers_policy, "joint", "separate")
                      ? LayerDraw::kSeparate
                      : LayerDraw::kJoint;
  policy.per_sample = per_sample;
  ScaleGenerator generator(
      ScaleGenerator::State{static_cast<uint64_t>(seed), static_cast<uint64_t>(drawn)});
  GradientScales scales = sample(policy, steps, batch, layers, generator);
  const auto drawn_list = [](std::vector<at::Tensor>& list) {
    if (!list.empty() && !list[0].defined()) list.clear();
    return std::move(list);
  };
  return {drawn_list(scales.h_scale), drawn_list(scales.c_scale),
          static_cast<int64_t>(generator.state().drawn)};
}

// Under autocast everything is computed in float32 (float64 stays float64), as torch's own
// recurrences on the CPU are not.
at::Tensor full(const at::Tensor& tensor) {
  const bool reduced = tensor.defined() && at::isFloatingType(tensor.scalar_type()) &&
                       tensor.scalar_type() != at::kDouble;
  return reduced ? tensor.to(at::kFloat) : tensor;
}

OptionalTensor full(const OptionalTensor& tensor) {
  return tensor.has_value() ? OptionalTensor(full(*tensor)) : OptionalTensor();
}

struct FullPrecision {
  const c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

std::tuple<at::Tensor, at::Tensor> lstm_autocast(
    const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  const FullPrecision inside;
  return lstm(full(x), full(h0), full(c0), full(w_ih), full(w_hh), full(b_ih), full(b_hh), h_scale,
              c_scale, lengths);
}

std::tuple<at::Tensor, at::Tensor> lstm_cell_autocast(
    const at::Tensor& x, const at::Tensor& h, const at::Tensor& c, const at::Tensor& w_ih,
    const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh,
    const OptionalTensor& h_scale, const OptionalTensor& c_scale) {
  const FullPrecision inside;
  return lstm_cell(full(x), full(h), full(c), full(w_ih), full(w_hh), full(b_ih), full(b_hh),
                   h_scale, c_scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, std::vector<at::Tensor>> lstm_stack_autocast(
    const at::Tensor& input, const OptionalTensor& h0, const OptionalTensor& c0,
    at::TensorList weights, bool has_biases, int64_t num_layers, double dropout, bool train,
    bool bidirectional, at::TensorList h_scale, at::TensorList c_scale,
    const OptionalTensor& batch_sizes, const OptionalTensor& sorted_indices, bool return_cells) {
  const FullPrecision inside;
  std::vector<at::Tensor> full_weights;
  for (const at::Tensor& weight : weights) full_weights.push_back(full(weight));
  return lstm_stack(full(input), full(h0), full(c0), full_weights, has_biases, num_layers, dropout,
                    train, bidirectional, h_scale, c_scale, batch_sizes, sorted_indices,
                    return_cells);
}

void register_autocast(torch::Library& m) {
  m.impl("lstm", lstm_autocast);
  m.impl("lstm_cell", lstm_cell_autocast);
  m.impl("lstm_stack", lstm_stack_autocast);
}

std::vector<std::string> kernel_lines() {
  std::vector<std::string> lines;
  for (const KernelInfo& kernel : kernels()) {
    lines.push_back(kernel.name + "\t" + kernel.device + "\t" + (kernel.available ? "yes" : "no") +
                    "\t" + kernel.reason);
  }
  return lines;
}

bool in_backward_pass() { return torch::autograd::get_current_graph_task_exec_info() != nullptr; }

std::string last_forward_kernel() { return last_forward().kernel; }

std::tuple<std::string, int64_t> last_backward_kernel() {
  CallStats stats = last_backward();
  return {std::move(stats.kernel), stats.recurrent_products};
}

}  // namespace

TORCH_LIBRARY(hdetach, m) {
  m.def(
      "lstm(Tensor x, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
      "Tensor? b_hh=None, Tensor? h_scale=None, Tensor? c_scale=None, Tensor? lengths=None) -> "
      "(Tensor h, Tensor c)");
  m.def(
      "lstm_cell(Tensor x, Tensor h, Tensor c, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
      "Tensor? b_hh=None, Tensor? h_scale=None, Tensor? c_scale=None) -> (Tensor h, Tensor c)",
      lstm_cell_impl);
  m.def(
      "lstm_stack(Tensor input, Tensor? h0, Tensor? c0, Tensor[] weights, bool has_biases, "
      "int num_layers, float dropout, bool train, bool bidirectional, Tensor[] h_scale, "
      "Tensor[] c_scale, Tensor? batch_sizes=None, Tensor? sorted_indices=None, "
      "bool return_cells=False) -> (Tensor output, Tensor h_n, Tensor c_n, Tensor[] cells)",
      lstm_stack);
  // What a traced graph is made of; gates is None unless keep_gates.
  m.def(
      "lstm_forward(Tensor x, Tensor h0, Tensor c0, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
      "Tensor? b_hh, Tensor? lengths, bool keep_gates, str kernel_name=\"\") -> "
      "(Tensor h, Tensor c, Tensor gates)");
  m.def(
      "lstm_backward(Tensor? dh, Tensor? dc, Tensor x, Tensor h0, Tensor c0, Tensor w_ih, "
      "Tensor w_hh, Tensor? b_ih, Tensor? b_hh, Tensor? h_scale, Tensor? c_scale, "
      "Tensor? lengths, Tensor h, Tensor c, Tensor gates, bool[7] wanted, str kernel_name=\"\") -> "
      "(Tensor dx, Tensor dh0, Tensor dc0, Tensor dw_ih, Tensor dw_hh, Tensor db_ih, "
      "Tensor db_hh)");
  m.def(
      "sample_scales(int steps, int batch, int layers, float detach, str path, str mode, "
      "str layers_policy, bool per_sample, int seed, int drawn) -> "
      "(Tensor[] h_scale, Tensor[] c_scale, int drawn)",
      sample_scales);
  // Whether this thread computes a gradient now, as it does where a checkpoint is recomputed.
  m.def("in_backward_pass() -> bool", in_backward_pass);
  // What ran, for `python -m hdetach.info` and tests. A line of kernels() is
  // "name\tdevice\tyes or no\twhy not".
  m.def("kernels() -> str[]", kernel_lines);
  m.def("active_kernel() -> str", active_kernel);
  m.def("last_forward() -> str", last_forward_kernel);
  m.def("last_backward() -> (str kernel, int recurrent_products)", last_backward_kernel);
}

// Every backend, so that tensors on another device get our message and not the dispatcher's.
TORCH_LIBRARY_IMPL(hdetach, CompositeExplicitAutograd, m) { m.impl("lstm", lstm_impl); }
TORCH_LIBRARY_IMPL(hdetach, Autograd, m) { m.impl("lstm", lstm_impl); }

TORCH_LIBRARY_IMPL(hdetach, CPU, m) {
  m.impl("lstm_forward", lstm_forward_kernel);
  m.impl("lstm_backward", lstm_backward_kernel);
}
TORCH_LIBRARY_IMPL(hdetach, CUDA, m) {
  m.impl("lstm_forward", lstm_forward_kernel);
  m.impl("lstm_backward", lstm_backward_kernel);
}
// lstm calls them below autograd. Who calls them above it (a graph recorded below it, a functorch
// transform within another) would lose gradients in silence; this has them raise instead.
TORCH_LIBRARY_IMPL(hdetach, Autograd, m) {
  m.impl("lstm_forward", torch::autograd::autogradNotImplementedFallback());
  m.impl("lstm_backward", torch::autograd::autogradNotImplementedFallback());
}
TORCH_LIBRARY_IMPL(hdetach, Meta, m) {
  m.impl("lstm_forward", lstm_forward_meta);
  m.impl("lstm_backward", lstm_backward_meta);
}

TORCH_LIBRARY_IMPL(hdetach, AutocastCPU, m) { register_autocast(m); }
TORCH_LIBRARY_IMPL(hdetach, AutocastCUDA, m) { register_autocast(m); }

}  // namespace hdetach
