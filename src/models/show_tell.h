// Show and Tell (Vinyals et al. 2015): the image is the LSTM's first input, the words follow.
#pragma once

#include "models/word_captioner.h"

namespace hdetach {

class ShowTell : public WordCaptioner {
 public:
  ShowTell(const CaptionerShape& shape, const at::Device& device);

  int64_t steps(int64_t words) const override { return words + 1; }  // the image's is one more
  at::Tensor loss(const CaptionTensors& batch, const c10::optional<at::Tensor>& h_scale,
                  const c10::optional<at::Tensor>& dropout_mask) override;
  State begin(const at::Tensor& features) override;
  Step step(State& state, const at::Tensor& words) override;

 private:
  // The image as the LSTM reads it, whole: the mean over its positions.
  at::Tensor read(const at::Tensor& features) const;  // -> [images, embedding]

  const Linear image_;
};

}  // namespace hdetach
