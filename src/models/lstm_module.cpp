#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <ostream>
#include <utility>

#include "hdetach/lstm.h"
#include "hdetach/modules.h"

namespace hdetach {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::nn::utils::rnn::PackedSequence;

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

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

OptionalTensor entry(const std::vector<Tensor>& scales, size_t index) {
  return scales.empty() ? OptionalTensor() : optional(scales[index]);
}

LSTMState reordered(const LSTMState& hx, const Tensor& batch_order) {
  if (!batch_order.defined()) return hx;
  return {std::get<0>(hx).index_select(1, batch_order),
          std::get<1>(hx).index_select(1, batch_order)};
}

}  // namespace

// Where the steps of a batch lie: dense [T,B,F], or packed [N,F] as in a PackedSequence, where only
// the N steps that exist are stored. The op sees [T,B,F] in the order of processing.
struct LSTMImpl::Layout {
  int64_t steps;
  int64_t batch;
  Tensor lengths;         // packed: [B] int64 on the CPU
  Tensor position[2];     // packed: [N], where each packed row stands in [T*B], forward and reverse
  Tensor last;            // packed: [B], where each sequence's last step stands in [T*B]
  Tensor sorted_indices;  // packed and sorted: [B]

  static Layout dense(const Tensor& input) {
    return {input.size(0), input.size(1), {}, {}, {}, {}};
  }
  static Layout packed(const PackedSequence& input, bool bidirectional);

  Tensor to_steps(const Tensor& data, bool reverse) const {
    if (lengths.defined()) {
      return ScatterRows::apply(data, position[reverse], steps * batch).view({steps, batch, -1});
    }
    return reverse ? data.flip(0) : data;
  }

  Tensor from_steps(const Tensor& states, bool reverse) const {
    if (lengths.defined()) return GatherRows::apply(states.flatten(0, 1), position[reverse]);
    return reverse ? states.flip(0) : states;
  }

  Tensor final_state(const Tensor& states) const {
    return lengths.defined() ? GatherRows::apply(states.flatten(0, 1), last) : states[steps - 1];
  }
};

LSTMImpl::Layout LSTMImpl::Layout::packed(const PackedSequence& input, bool bidirectional) {
  const Tensor sizes_tensor = input.batch_sizes().to(at::kLong).contiguous();
  const int64_t steps = sizes_tensor.numel();
  TORCH_CHECK(steps > 0, "[LSTM] packed_input has no steps; a sequence needs at least one.");
  const int64_t* sizes = sizes_tensor.data_ptr<int64_t>();
  const int64_t batch = sizes[0], total = input.data().size(0);
  Layout layout{steps, batch, at::empty({batch}, at::kLong), {}, {}, input.sorted_indices()};
  Tensor forward = at::empty({total}, at::kLong), reverse = at::empty({total}, at::kLong);
  Tensor last = at::empty({batch}, at::kLong);

  int64_t* length = layout.lengths.data_ptr<int64_t>();
  int64_t stored = 0;
  for (int64_t t = 0; t < steps; ++t) {
    TORCH_CHECK(sizes[t] > 0 && sizes[t] <= sizes[t > 0 ? t - 1 : 0], "[LSTM] batch_sizes[", t,
                "] of packed_input is ", sizes[t], "; they must be positive and never grow.");
    stored += sizes[t];
    std::fill(length, length + sizes[t], t + 1);
  }
  TORCH_CHECK(stored == total, "[LSTM] packed_input has ", total, " rows of data but its ",
              "batch_sizes sum to ", stored, ".");
  int64_t* forward_row = forward.data_ptr<int64_t>();
  int64_t* reverse_row = reverse.data_ptr<int64_t>();
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t b = 0; b < sizes[t]; ++b) {
      *forward_row++ = t * batch + b;
      *reverse_row++ = (length[b] - 1 - t) * batch + b;
    }
  }
  for (int64_t b = 0; b < batch; ++b) last.data_ptr<int64_t>()[b] = (length[b] - 1) * batch + b;

  const auto device = input.data().device();
  layout.position[0] = forward.to(device);
  if (bidirectional) layout.position[1] = reverse.to(device);
  layout.last = last.to(device);
  return layout;
}

LSTMOptions::LSTMOptions(const torch::nn::LSTMOptions& options)
    : input_size_(options.input_size()),
      hidden_size_(options.hidden_size()),
      num_layers_(options.num_layers()),
      bias_(options.bias()),
      batch_first_(options.batch_first()),
      dropout_(options.dropout()),
      bidirectional_(options.bidirectional()),
      proj_size_(options.proj_size()) {}

LSTMImpl::LSTMImpl(const LSTMOptions& options) : options(options) {
  if (options.seed().has_value()) generator_ = ScaleGenerator(*options.seed());
  reset();
}

void LSTMImpl::reset() {
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

const Tensor& LSTMImpl::parameter(const char* kind, int64_t layer, int64_t direction) const {
  return parameters_[kind + ("_l" + std::to_string(layer)) + (direction == 1 ? "_reverse" : "")];
}

LSTMState LSTMImpl::checked_hx(const c10::optional<LSTMState>& hx, bool batched,
                               const Layout& layout, const Tensor& like) const {
  const int64_t states = options.num_layers() * num_directions(), hidden = options.hidden_size();
  if (!hx.has_value()) {
    const Tensor zeros = at::zeros({states, layout.batch, hidden}, like.options());
    return {zeros, zeros};
  }
  std::vector<int64_t> want{states, hidden};
  if (batched) want.insert(want.begin() + 1, layout.batch);
  const auto check = [&](const char* name, const Tensor& state) {
    TORCH_CHECK(state.defined(), "[LSTM] ", name, " of hx is undefined; pass both states or none.");
    TORCH_CHECK(state.sizes() == want, "[LSTM] ", name, " of hx has shape ", state.sizes(),
                "; for this input it must be ", at::IntArrayRef(want), ".");
    return batched ? state : state.unsqueeze(1);
  };
  return {check("h_0", std::get<0>(*hx)), check("c_0", std::get<1>(*hx))};
}

LSTMResult LSTMImpl::run(Tensor input, const Layout& layout, const LSTMState& hx,
                         GradientScales scales, bool want_cells) {
  place(scales.h_scale, input, layout.sorted_indices);
  place(scales.c_scale, input, layout.sorted_indices);
  const auto bias = [&](const char* kind, int64_t layer, int64_t direction) {
    return options.bias() ? OptionalTensor(parameter(kind, layer, direction)) : OptionalTensor();
  };

  std::vector<Tensor> h_n, c_n, cells;
  for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
    std::vector<Tensor> layer_h, layer_c;
    for (int64_t direction = 0; direction < num_directions(); ++direction) {
      const int64_t index = layer * num_directions() + direction;
      const auto [h, c] = lstm(
          layout.to_steps(input, direction == 1), std::get<0>(hx)[index], std::get<1>(hx)[index],
          parameter("weight_ih", layer, direction), parameter("weight_hh", layer, direction),
          bias("bias_ih", layer, direction), bias("bias_hh", layer, direction),
          entry(scales.h_scale, index), entry(scales.c_scale, index), optional(layout.lengths));
      layer_h.push_back(layout.from_steps(h, direction == 1));
      if (want_cells) layer_c.push_back(layout.from_steps(c, direction == 1));
      h_n.push_back(layout.final_state(h));
      c_n.push_back(layout.final_state(c));
    }
    const auto joined = [](const std::vector<Tensor>& directions) {
      return directions.size() == 1 ? directions[0] : at::cat(directions, -1);
    };
    input = joined(layer_h);
    if (want_cells) cells.push_back(joined(layer_c));
    if (options.dropout() > 0.0 && is_training() && layer + 1 < options.num_layers()) {
      input = at::dropout(input, options.dropout(), /*train=*/true);
    }
  }
  return {input, {at::stack(h_n), at::stack(c_n)}, std::move(cells)};
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
  const Layout layout = Layout::dense(x);
  TORCH_CHECK(layout.steps > 0 && layout.batch > 0, "[LSTM] input has shape ", input.sizes(),
              "; it needs at least one step and one row.");
  const LSTMState initial = checked_hx(hx, batched, layout, x);
  LSTMResult out =
      run(x, layout, initial, scales ? *scales : draw_scales(layout.steps, layout.batch),
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
  const Layout layout = Layout::packed(packed_input, options.bidirectional());
  const LSTMState initial = checked_hx(hx, /*batched=*/true, layout, data);
  LSTMResult out = run(data, layout, reordered(initial, packed_input.sorted_indices()),
                       draw_scales(layout.steps, layout.batch), /*want_cells=*/false);
  return {PackedSequence(out.output, packed_input.batch_sizes(), packed_input.sorted_indices(),
                         packed_input.unsorted_indices()),
          reordered(out.hx, packed_input.unsorted_indices())};
}

}  // namespace hdetach
