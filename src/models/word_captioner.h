// What both captioners are made of besides the image: words in, the LSTM's weights, words out.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "models/captioner.h"

namespace hdetach {

struct Linear {
  at::Tensor weight;  // [outputs, inputs]
  at::Tensor bias;    // [outputs], or undefined

  at::Tensor operator()(const at::Tensor& x) const;
};

// Rows of a table, some of them many times. Their gradients add up in the same order every time, on
// a GPU too, which index_select's do not.
at::Tensor rows_of(const at::Tensor& table, const at::Tensor& index);

// The words of a minibatch without its padding: step by step, the longest captions first, so that
// those still under way at a step are the first ones.
struct PackedWords {
  explicit PackedWords(const CaptionTensors& batch);

  std::vector<int64_t> rows;  // captions under way at each step
  at::Tensor order;           // [rows] int64: the longest first
  at::Tensor position;        // [words] int64: where each word stands in [T * rows]

  at::Tensor gather(const at::Tensor& steps) const {  // [T, rows, ..] -> [words, ..]
    return steps.flatten(0, 1).index_select(0, position);
  }
};

class WordCaptioner : public Captioner {
 protected:
  WordCaptioner(const CaptionerShape& shape, int64_t lstm_inputs, const at::Device& device);

  Linear add_linear(const std::string& name, int64_t outputs, int64_t inputs, bool bias = true);

  // Throws c10::Error unless the shapes agree with each other and with the model.
  void check(const CaptionTensors& batch, const c10::optional<at::Tensor>& h_scale,
             const c10::optional<at::Tensor>& dropout_mask) const;

  at::Tensor embed(const at::Tensor& words) const { return rows_of(embedding_, words); }
  // The new h and c. h_scale: [], or absent for one.
  std::tuple<at::Tensor, at::Tensor> cell(const at::Tensor& x, const at::Tensor& h,
                                          const at::Tensor& c,
                                          const c10::optional<at::Tensor>& h_scale = {}) const;
  at::Tensor log_probability(const at::Tensor& h) const;  // [rows, H] -> [rows, words]
  // Only words that count reach the output layer, by far the largest product of the model.
  at::Tensor word_loss(const at::Tensor& h, const PackedWords& packed, const CaptionTensors& batch,
                       const c10::optional<at::Tensor>& dropout_mask) const;  // h: [words, H]

  const CaptionerShape shape_;
  const at::Device device_;
  const at::Tensor embedding_;                  // [words, embedding]
  const at::Tensor w_ih_, w_hh_, b_ih_, b_hh_;  // of the LSTM
  const Linear output_;
};

}  // namespace hdetach
