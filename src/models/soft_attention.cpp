#include "models/soft_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include "models/attend.h"

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

at::Tensor SoftAttention::weights_of_scores(int64_t rows) const {
  return score_.weight.expand({rows, shape_.hidden});
}

at::Tensor SoftAttention::loss(const CaptionTensors& batch,
                               const c10::optional<at::Tensor>& h_scale,
                               const c10::optional<at::Tensor>& dropout_mask) {
  check(batch, h_scale, dropout_mask);
  const PackedWords packed(batch);
  const at::Tensor image = batch.image.index_select(0, packed.order);
  const State by_image = read(batch.features);
  const at::Tensor projected = rows_of(by_image.projected.flatten(1), image);
  Sight sight{batch.features.index_select(0, image),
              projected.view({-1, batch.features.size(1), shape_.hidden}),
              weights_of_scores(image.size(0))};
  at::Tensor h = rows_of(by_image.h, image), c = rows_of(by_image.c, image);
  const std::vector<at::Tensor> words =
      embed(packed.gather(batch.inputs)).split_with_sizes(packed.rows);

  std::vector<at::Tensor> all_h;
  for (size_t t = 0; t < words.size(); ++t) {
    if (packed.rows[t] < h.size(0)) {
      h = h.narrow(0, 0, packed.rows[t]);
      c = c.narrow(0, 0, packed.rows[t]);
    }
    // The scale steers the recurrent input alone: the attention's query is h itself.
    c10::optional<at::Tensor> scale;
    if (h_scale.has_value()) scale = h_scale->select(0, static_cast<int64_t>(t));
    std::tie(h, c) = cell(attend(words[t], query_(h), sight).x, h, c, scale);
    all_h.push_back(h);
  }
  return word_loss(at::cat(all_h), packed, batch, dropout_mask);
}

Captioner::State SoftAttention::begin(const at::Tensor& features) {
  const c10::NoGradGuard no_grad;
  return read(features);
}

Captioner::Step SoftAttention::step(State& state, const at::Tensor& words) {
  const c10::NoGradGuard no_grad;
  Sight sight{state.features, state.projected, weights_of_scores(words.size(0))};
  const Look seen = attend(embed(words), query_(state.h), sight);
  std::tie(state.h, state.c) = cell(seen.x, state.h, state.c);
  return {log_probability(state.h), seen.attention};
}

}  // namespace hdetach
