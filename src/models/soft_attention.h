// Soft Attention (Xu et al. 2015): before every word the model looks at the image anew, more at
// some positions than at others. Without the gate and the penalty on uneven looks of that paper.
#pragma once

#include "models/word_captioner.h"

namespace hdetach {

class SoftAttention : public WordCaptioner {
 public:
  SoftAttention(const CaptionerShape& shape, const at::Device& device);

  int64_t steps(int64_t words) const override { return words; }
  at::Tensor loss(const CaptionTensors& batch, const c10::optional<at::Tensor>& h_scale,
                  const c10::optional<at::Tensor>& dropout_mask) override;
  State begin(const at::Tensor& features) override;
  Step step(State& state, const at::Tensor& words) override;

 private:
  // What the state before the first word is, and what the attention compares with: both depend on
  // the image alone, so captions of one image share them.
  State read(const at::Tensor& features) const;      // [images, positions, channels]
  at::Tensor weights_of_scores(int64_t rows) const;  // [rows, hidden], every row the same

  const Linear initial_h_, initial_c_;
  const Linear key_, query_, score_;
};

}  // namespace hdetach
