#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>
#include <torch/enum.h>

#include <cmath>
#include <mutex>
#include <ostream>
#include <utility>

#include "hdetach/modules.h"
#include "op/stack.h"

namespace hdetach {
namespace {

using at::Tensor;
using torch::nn::detail::RNNOptionsBase;
using torch::nn::utils::rnn::PackedSequence;

RNNOptionsBase base_of(const LSTMOptions& options) {
  return RNNOptionsBase(torch::kLSTM, options.input_size(), options.hidden_size())
      .num_layers(options.num_layers())
      .bias(options.bias())
      .batch_first(options.batch_first())
      .dropout(options.dropout())
      .bidirectional(options.bidirectional())
      .proj_size(options.proj_size());
}

}  // namespace

LSTMOptions::LSTMOptions(const torch::nn::LSTMOptions& options)
    : input_size_(options.input_size()),
      hidden_size_(options.hidden_size()),
      num_layers_(options.num_layers()),
      bias_(options.bias()),
      batch_first_(options.batch_first()),
      dropout_(options.dropout()),
      bidirectional_(options.bidirectional()),
      proj_size_(options.proj_size()) {}

LSTMImpl::LSTMImpl(const LSTMOptions& options) : options(options), options_base(base_of(options)) {
  if (options.seed().has_value()) generator_ = ScaleGenerator(*options.seed());
  reset();
}

void LSTMImpl::reset() {
  options_base = base_of(options);
  const auto positive = [](const char* name, int64_t value) {
    TORCH_CHECK(value > 0, "[LSTM] ", name, " is ", value, "; it must be positive.");
  };
  positive("input_size", options.input_size());
  positive("hidden_size", options.hidden_size());
  positive("num_layers", options.num_layers());
  TORCH_CHECK(options.proj_size() == 0, "[LSTM] proj_size is ", options.proj_size(),
              "; projections are not supported, leave it at 0.");
  const double dropout = options.dropout(), detach = options.policy().detach;
  TORCH_CHECK(dropout >= 0.0 && dropout <= 1.0, "[LSTM] dropout is ", dropout,
              "; it must be in [0,1].");
  TORCH_CHECK(detach >= 0.0 && detach <= 1.0, "[LSTM] policy.detach is ", detach,
              "; it must be in [0,1].");
  if (dropout > 0.0 && options.num_layers() == 1) {
    TORCH_WARN("[LSTM] dropout is ", dropout,
               " but num_layers is 1: dropout acts between layers, so it does nothing here.");
  }

  const int64_t hidden = options.hidden_size(), gates = 4 * hidden;
  for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
    const int64_t input = layer == 0 ? options.input_size() : hidden * num_directions();
    for (int64_t direction = 0; direction < num_directions(); ++direction) {
      const std::string end = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      register_parameter("weight_ih" + end, at::empty({gates, input}));
      register_parameter("weight_hh" + end, at::empty({gates, hidden}));
      if (!options.bias()) continue;
      register_parameter("bias_ih" + end, at::empty({gates}));
      register_parameter("bias_hh" + end, at::empty({gates}));
    }
  }
  reset_parameters();
}

void LSTMImpl::reset_parameters() {
  torch::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(options.hidden_size()));
  for (Tensor& weight : parameters()) weight.uniform_(-bound, bound);
}

void LSTMImpl::pretty_print(std::ostream& stream) const {
  const auto yes_no = [](bool value) { return value ? "true" : "false"; };
  stream << "hdetach::LSTM(input_size=" << options.input_size()
         << ", hidden_size=" << options.hidden_size() << ", num_layers=" << options.num_layers()
         << ", bias=" << yes_no(options.bias()) << ", batch_first=" << yes_no(options.batch_first())
         << ", dropout=" << options.dropout()
         << ", bidirectional=" << yes_no(options.bidirectional())
         << ", detach=" << options.policy().detach << ")";
}

ScaleGenerator& LSTMImpl::generator() {
  if (!generator_.has_value()) {
    auto source = at::detail::getDefaultCPUGenerator();
    std::lock_guard<std::mutex> lock(source.mutex());
    generator_ = ScaleGenerator(at::check_generator<at::CPUGeneratorImpl>(source)->random64());
  }
  return *generator_;
}

GradientScales LSTMImpl::draw_scales(int64_t steps, int64_t batch) {
  if (!is_training()) return {};
  const GradientPolicy& policy = options.policy();
  // A policy that draws nothing must not seed the generator: that would move torch's own.
  ScaleGenerator unused(0);
  const bool draws = policy.mode == Mode::kDetach && policy.detach != 0.0;
  return sample(policy, steps, batch, options.num_layers() * num_directions(),
                draws ? generator() : unused);
}

c10::optional<LSTMState> LSTMImpl::checked_hx(const c10::optional<LSTMState>& hx, bool batched,
                                              int64_t batch) const {
  if (!hx.has_value()) return {};
  const int64_t states = options.num_layers() * num_directions(), hidden = options.hidden_size();
  std::vector<int64_t> want{states, hidden};
  if (batched) want.insert(want.begin() + 1, batch);
  const auto check = [&](const char* name, const Tensor& state) {
    TORCH_CHECK(state.defined(), "[LSTM] ", name, " of hx is undefined; pass both states or none.");
    TORCH_CHECK(state.sizes() == want, "[LSTM] ", name, " of hx has shape ", state.sizes(),
                "; for this input it must be ", at::IntArrayRef(want), ".");
    return batched ? state : state.unsqueeze(1);
  };
  return LSTMState{check("h_0", std::get<0>(*hx)), check("c_0", std::get<1>(*hx))};
}

LSTMResult LSTMImpl::run(const Tensor& input, Packing* packing, const c10::optional<LSTMState>& hx,
                         const GradientScales& scales, bool want_cells) {
  // Written only where they changed: threads may share a module.
  if (options_base.dropout() != options.dropout() ||
      options_base.batch_first() != options.batch_first()) {
    options_base = base_of(options);
  }
  const StackOptions stack{options.bias(), options.num_layers(), options.dropout(), is_training(),
                           options.bidirectional()};
  // Parameters are registered in the order that the stack takes them.
  StackResult out =
      run_stack(input, packing, hx ? OptionalTensor(std::get<0>(*hx)) : OptionalTensor(),
                hx ? OptionalTensor(std::get<1>(*hx)) : OptionalTensor(), parameters_.values(),
                stack, scales, want_cells);
  return {std::move(out.output), {std::move(out.h_n), std::move(out.c_n)}, std::move(out.cells)};
}

LSTMResult LSTMImpl::run_dense(const Tensor& input, const c10::optional<LSTMState>& hx,
                               const GradientScales* scales) {
  TORCH_CHECK(input.defined(), "[LSTM] input is undefined; it must be [T,B,I] or [T,I].");
  const bool batched = input.dim() == 3, transposed = batched && options.batch_first();
  TORCH_CHECK(batched || input.dim() == 2, "[LSTM] input has shape ", input.sizes(),
              "; it must be ", options.batch_first() ? "[B,T,I]" : "[T,B,I]", ", or [T,I].");
  TORCH_CHECK(input.size(-1) == options.input_size(), "[LSTM] input has ", input.size(-1),
              " features (shape ", input.sizes(), ") but input_size is ", options.input_size(),
              ".");
  const Tensor x = transposed ? input.transpose(0, 1) : (batched ? input : input.unsqueeze(1));
  const int64_t steps = x.size(0), batch = x.size(1);
  TORCH_CHECK(steps > 0 && batch > 0, "[LSTM] input has shape ", input.sizes(),
              "; it needs at least one step and one row.");
  LSTMResult out = run(x, /*packing=*/nullptr, checked_hx(hx, batched, batch),
                       scales ? *scales : draw_scales(steps, batch),
                       /*want_cells=*/scales != nullptr);

  const auto as_given = [&](const Tensor& t) {
    return transposed ? t.transpose(0, 1) : (batched ? t : t.squeeze(1));
  };
  out.output = as_given(out.output);
  for (Tensor& cell : out.cells) cell = as_given(cell);
  if (!batched) out.hx = {std::get<0>(out.hx).squeeze(1), std::get<1>(out.hx).squeeze(1)};
  return out;
}

std::tuple<Tensor, LSTMState> LSTMImpl::forward(const Tensor& input, c10::optional<LSTMState> hx) {
  LSTMResult out = run_dense(input, hx, nullptr);
  return {std::move(out.output), std::move(out.hx)};
}

LSTMResult LSTMImpl::forward_with_scales(const Tensor& input, c10::optional<LSTMState> hx,
                                         const GradientScales& scales) {
  const size_t want = options.num_layers() * num_directions();
  const auto check = [&](const char* name, const std::vector<Tensor>& list) {
    TORCH_CHECK(list.empty() || list.size() == want, "[LSTM] scales.", name, " has ", list.size(),
                " entries but the module has ", want, " (num_layers * num_directions).");
  };
  check("h_scale", scales.h_scale);
  check("c_scale", scales.c_scale);
  return run_dense(input, hx, &scales);
}

std::tuple<PackedSequence, LSTMState> LSTMImpl::forward_with_packed_input(
    const PackedSequence& packed_input, c10::optional<LSTMState> hx) {
  const Tensor& data = packed_input.data();
  TORCH_CHECK(data.defined() && data.dim() == 2 && data.size(1) == options.input_size(),
              "[LSTM] packed_input holds data of shape ",
              data.defined() ? data.sizes() : at::IntArrayRef(),
              "; it must be [N,I] with I=", options.input_size(), ".");
  Packing packing = Packing::of(data, packed_input.batch_sizes(), packed_input.sorted_indices());
  LSTMResult out = run(data, &packing, checked_hx(hx, /*batched=*/true, packing.batch),
                       draw_scales(packing.steps, packing.batch), /*want_cells=*/false);
  return {PackedSequence(out.output, packed_input.batch_sizes(), packed_input.sorted_indices(),
                         packed_input.unsorted_indices()),
          std::move(out.hx)};
}

}  // namespace hdetach
