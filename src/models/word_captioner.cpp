#include "models/word_captioner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hdetach/lstm.h"

namespace hdetach {
namespace {

double bound_of(int64_t inputs) { return 1.0 / std::sqrt(static_cast<double>(inputs)); }

CaptionerShape checked(const CaptionerShape& shape) {
  const auto positive = [](const char* name, int64_t value) {
    TORCH_CHECK(value > 0, "[captioner] ", name, " is ", value, "; it must be positive.");
  };
  positive("words", shape.words);
  positive("positions", shape.positions);
  positive("channels", shape.channels);
  positive("embedding", shape.embedding);
  positive("hidden", shape.hidden);
  return shape;
}

}  // namespace

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor rows_of(const at::Tensor& table, const at::Tensor& index) {
  return at::embedding(table, index);
}

PackedWords::PackedWords(const CaptionTensors& batch) {
  const int64_t steps = batch.inputs.size(0), captions = batch.inputs.size(1);
  const at::Tensor lengths = batch.lengths.contiguous();
  const int64_t* const length = lengths.data_ptr<int64_t>();
  std::vector<int64_t> longest_first(captions), positions;
  std::iota(longest_first.begin(), longest_first.end(), 0);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](int64_t a, int64_t b) { return length[a] > length[b]; });
  for (int64_t t = 0; t < steps; ++t) {
    int64_t count = 0;
    while (count < captions && length[longest_first[count]] > t) {
      positions.push_back(t * captions + longest_first[count++]);
    }
    if (count == 0) break;
    rows.push_back(count);
  }
  order = at::tensor(longest_first, at::kLong).to(batch.inputs.device());
  position = at::tensor(positions, at::kLong).to(batch.inputs.device());
}

WordCaptioner::WordCaptioner(const CaptionerShape& shape, int64_t lstm_inputs,
                             const at::Device& device)
    : shape_(checked(shape)),
      device_(device),
      embedding_(add("embedding.weight", {shape.words, shape.embedding}, 0.1, device)),
      w_ih_(add("lstm.weight_ih_l0", {4 * shape.hidden, lstm_inputs}, bound_of(shape.hidden),
                device)),
      w_hh_(add("lstm.weight_hh_l0", {4 * shape.hidden, shape.hidden}, bound_of(shape.hidden),
                device)),
      b_ih_(add("lstm.bias_ih_l0", {4 * shape.hidden}, bound_of(shape.hidden), device)),
      b_hh_(add("lstm.bias_hh_l0", {4 * shape.hidden}, bound_of(shape.hidden), device)),
      output_{add("output.weight", {shape.words, shape.hidden}, 0.1, device),
              add("output.bias", {shape.words}, 0.0, device)} {}

Linear WordCaptioner::add_linear(const std::string& name, int64_t outputs, int64_t inputs,
                                 bool bias) {
  Linear linear;
  linear.weight = add(name + ".weight", {outputs, inputs}, bound_of(inputs), device_);
  if (bias) linear.bias = add(name + ".bias", {outputs}, bound_of(inputs), device_);
  return linear;
}

void WordCaptioner::check(const CaptionTensors& batch, const c10::optional<at::Tensor>& h_scale,
                          const c10::optional<at::Tensor>& dropout_mask) const {
  const auto shape_is = [](const char* name, const at::Tensor& tensor, at::IntArrayRef want) {
    TORCH_CHECK(tensor.sizes() == want, "[captioner] ", name, " has shape ", tensor.sizes(),
                "; it must be ", want, ".");
  };
  TORCH_CHECK(batch.features.dim() == 3 && batch.features.size(2) == shape_.channels,
              "[captioner] features has shape ", batch.features.sizes(),
              "; it must be [images, positions, ", shape_.channels, "].");
  TORCH_CHECK(batch.inputs.dim() == 2 && batch.inputs.numel() > 0, "[captioner] inputs has shape ",
              batch.inputs.sizes(), "; it must be [T, rows].");
  const int64_t steps = batch.inputs.size(0), captions = batch.inputs.size(1);
  shape_is("targets", batch.targets, {steps, captions});
  shape_is("image", batch.image, {captions});
  shape_is("lengths", batch.lengths, {captions});
  TORCH_CHECK(batch.lengths.device().is_cpu() && batch.lengths.scalar_type() == at::kLong,
              "[captioner] lengths is ", batch.lengths.scalar_type(), " on ",
              batch.lengths.device(), "; it must be int64 on the CPU.");
  const int64_t shortest = batch.lengths.min().item<int64_t>();
  const int64_t longest = batch.lengths.max().item<int64_t>();
  TORCH_CHECK(shortest >= 1 && longest <= steps, "[captioner] lengths go from ", shortest, " to ",
              longest, "; they must be in 1..T with T=", steps, ".");
  if (h_scale.has_value()) shape_is("h_scale", *h_scale, {this->steps(steps)});
  if (dropout_mask.has_value()) {
    shape_is("dropout_mask", *dropout_mask, {steps, captions, shape_.hidden});
  }
}

std::tuple<at::Tensor, at::Tensor> WordCaptioner::cell(
    const at::Tensor& x, const at::Tensor& h, const at::Tensor& c,
    const c10::optional<at::Tensor>& h_scale) const {
  return lstm_cell(x, h, c, w_ih_, w_hh_, b_ih_, b_hh_, h_scale);
}

at::Tensor WordCaptioner::log_probability(const at::Tensor& h) const {
  return at::log_softmax(output_(h), 1);
}

at::Tensor WordCaptioner::word_loss(const at::Tensor& h, const PackedWords& packed,
                                    const CaptionTensors& batch,
                                    const c10::optional<at::Tensor>& dropout_mask) const {
  const at::Tensor seen = dropout_mask.has_value() ? h * packed.gather(*dropout_mask) : h;
  return at::cross_entropy_loss(output_(seen), packed.gather(batch.targets));
}

}  // namespace hdetach
