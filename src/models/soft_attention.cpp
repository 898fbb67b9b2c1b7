#include "models/soft_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/softmax.h>
#include <c10/core/GradMode.h>

namespace hdetach {

// One bias is enough where two products are added, and none where a softmax follows.
SoftAttention::SoftAttention(const CaptionerShape& shape, const at::Device& device)
    : WordCaptioner(shape, shape.embedding + shape.channels, device),
      initial_h_(add_linear("initial_h", shape.hidden, shape.channels)),
      initial_c_(add_linear("initial_c", shape.hidden, shape.channels)),
      key_(add_linear("attention.key", shape.hidden, shape.channels)),
      query_(add_linear("attention.query", shape.hidden, shape.hidden, /*bias=*/false)),
      score_(add_linear("attention.score", 1, shape.hidden, /*bias=*/false)) {}

Captioner::State SoftAttention::read(const at::Tensor& features) const {
  const at::Tensor mean = features.mean(1);
  return {initial_h_(mean), initial_c_(mean), features, key_(features)};
}

SoftAttention::Look SoftAttention::look(const State& state) const {
  const at::Tensor match = (state.projected + query_(state.h).unsqueeze(1)).tanh_();
  const at::Tensor attention = at::softmax(score_(match).squeeze(2), 1);
  return {attention, at::bmm(attention.unsqueeze(1), state.features).squeeze(1)};
}

at::Tensor SoftAttention::loss(const CaptionTensors& batch,
                               const c10::optional<at::Tensor>& h_scale,
                               const c10::optional<at::Tensor>& dropout_mask) {
  check(batch, h_scale, dropout_mask);
  const PackedWords packed(batch);
  const at::Tensor image = batch.image.index_select(0, packed.order);
  const State by_image = read(batch.features);
  const at::Tensor projected = rows_of(by_image.projected.flatten(1), image);
  State state{rows_of(by_image.h, image), rows_of(by_image.c, image),
              batch.features.index_select(0, image),
              projected.view({-1, batch.features.size(1), shape_.hidden})};
  const std::vector<at::Tensor> words =
      embed(packed.gather(batch.inputs)).split_with_sizes(packed.rows);

  std::vector<at::Tensor> all_h;
  for (size_t t = 0; t < words.size(); ++t) {
    if (packed.rows[t] < state.h.size(0)) {
      for (at::Tensor* part : {&state.h, &state.c, &state.features, &state.projected}) {
        *part = part->narrow(0, 0, packed.rows[t]);
      }
    }
    // The scale steers the recurrent input alone: the attention's query is h itself.
    c10::optional<at::Tensor> scale;
    if (h_scale.has_value()) scale = h_scale->select(0, static_cast<int64_t>(t));
    const at::Tensor x = at::cat({words[t], look(state).context}, 1);
    std::tie(state.h, state.c) = cell(x, state.h, state.c, scale);
    all_h.push_back(state.h);
  }
  return word_loss(at::cat(all_h), packed, batch, dropout_mask);
}

Captioner::State SoftAttention::begin(const at::Tensor& features) {
  const c10::NoGradGuard no_grad;
  return read(features);
}

Captioner::Step SoftAttention::step(State& state, const at::Tensor& words) {
  const c10::NoGradGuard no_grad;
  const Look seen = look(state);
  std::tie(state.h, state.c) = cell(at::cat({embed(words), seen.context}, 1), state.h, state.c);
  return {log_probability(state.h), seen.attention};
}

}  // namespace hdetach
