#include "models/show_tell.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "hdetach/lstm.h"

namespace hdetach {

ShowTell::ShowTell(const CaptionerShape& shape, const at::Device& device)
    : WordCaptioner(shape, shape.embedding, device),
      image_(add_linear("image", shape.embedding, shape.channels)) {}

at::Tensor ShowTell::read(const at::Tensor& features) const { return image_(features.mean(1)); }

at::Tensor ShowTell::loss(const CaptionTensors& batch, const c10::optional<at::Tensor>& h_scale,
                          const c10::optional<at::Tensor>& dropout_mask) {
  check(batch, h_scale, dropout_mask);
  const PackedWords packed(batch);
  const at::Tensor image = rows_of(read(batch.features), batch.image).unsqueeze(0);
  const at::Tensor x = at::cat({image, embed(batch.inputs)});  // [1 + T, rows, embedding]
  const at::Tensor zeros = at::zeros({x.size(1), shape_.hidden}, x.options());
  const auto [h, c] =
      lstm(x, zeros, zeros, w_ih_, w_hh_, b_ih_, b_hh_, h_scale, /*c_scale=*/{}, batch.lengths + 1);
  // Nothing is to be said at the image's step.
  return word_loss(packed.gather(h.narrow(0, 1, batch.inputs.size(0))), packed, batch,
                   dropout_mask);
}

Captioner::State ShowTell::begin(const at::Tensor& features) {
  const c10::NoGradGuard no_grad;
  State state;
  const at::Tensor zeros = at::zeros({features.size(0), shape_.hidden}, features.options());
  std::tie(state.h, state.c) = cell(read(features), zeros, zeros);
  return state;
}

Captioner::Step ShowTell::step(State& state, const at::Tensor& words) {
  const c10::NoGradGuard no_grad;
  std::tie(state.h, state.c) = cell(embed(words), state.h, state.c);
  return {log_probability(state.h), at::Tensor()};
}

}  // namespace hdetach
