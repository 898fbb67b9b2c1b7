// Every operator that Python and TorchScript see, by its schema.
#include <ATen/core/dispatch/Dispatcher.h>
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

std::vector<std::string> kernel_lines() {
  std::vector<std::string> lines;
  for (const KernelInfo& kernel : kernels()) {
    lines.push_back(kernel.name + "\t" + kernel.device + "\t" + (kernel.available ? "yes" : "no") +
                    "\t" + kernel.reason);
  }
  return lines;
}

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
      "lstm_stack(Tensor input, Tensor h0, Tensor c0, Tensor[] weights, bool has_biases, "
      "int num_layers, float dropout, bool train, bool bidirectional, Tensor?[] h_scale, "
      "Tensor?[] c_scale, Tensor? batch_sizes=None, Tensor? sorted_indices=None, "
      "bool return_cells=False) -> (Tensor output, Tensor h_n, Tensor c_n, Tensor[] cells)",
      lstm_stack);
  m.def(
      "sample_scales(int steps, int batch, int layers, float detach, str path, str mode, "
      "str layers_policy, bool per_sample, int seed, int drawn) -> "
      "(Tensor[] h_scale, Tensor[] c_scale, int drawn)",
      sample_scales);
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

}  // namespace hdetach
