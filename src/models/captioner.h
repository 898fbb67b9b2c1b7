// Models that put a caption to an image: Show and Tell (Vinyals et al. 2015) and Soft Attention (Xu
// et al. 2015), with the LSTM of this library.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/named_tensor.h"

namespace hdetach {

struct CaptionerShape {
  int64_t words = 0;                    // of the vocabulary
  int64_t positions = 1, channels = 0;  // of the image's features
  int64_t embedding = 512, hidden = 512;
};

// A minibatch. Rows are captions; several may belong to one image.
struct CaptionTensors {
  at::Tensor features;         // [images, positions, channels]
  at::Tensor image;            // [rows] int64: whose caption it is
  at::Tensor inputs, targets;  // [T, rows] int64; see tasks::CaptionBatch
  at::Tensor lengths;          // [rows] int64, on the CPU
};

class Captioner {
 public:
  virtual ~Captioner() = default;

  // Contiguous float32, all on one device, in a fixed order.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // Embedding and output weights from U(-0.1, 0.1), output bias 0, the rest as nn.LSTM and
  // nn.Linear start. The same seed gives the same weights on any machine.
  void init(uint64_t seed);

  // LSTM steps that a minibatch of T words a row takes: one scale each.
  virtual int64_t steps(int64_t words) const = 0;
  // The mean cross-entropy of the words to come, padding left out. h_scale: [steps(T)], or absent
  // for ones. dropout_mask: [T, rows, hidden], multiplies the LSTM's output before the output
  // layer, or absent.
  virtual at::Tensor loss(const CaptionTensors& batch, const c10::optional<at::Tensor>& h_scale,
                          const c10::optional<at::Tensor>& dropout_mask) = 0;

  // Decoding, without gradients. A state has one row for each caption under way.
  struct State {
    at::Tensor h, c;       // [rows, H]
    at::Tensor features;   // [rows, positions, channels], of Soft Attention
    at::Tensor projected;  // [rows, positions, A], likewise
  };
  virtual State begin(const at::Tensor& features) = 0;  // [images, positions, channels]
  struct Step {
    at::Tensor log_probability;  // [rows, words]
    at::Tensor attention;        // [rows, positions]; undefined for Show and Tell
  };
  virtual Step step(State& state, const at::Tensor& words) = 0;  // words: [rows] int64

 protected:
  // A parameter more, zero until init() draws it from U(-bound, bound).
  at::Tensor add(const std::string& name, at::IntArrayRef sizes, double bound,
                 const at::Device& device);

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<double> bounds_;  // one a parameter
};

// kind: "show-tell" or "soft-attention".
std::unique_ptr<Captioner> make_captioner(const std::string& kind, const CaptionerShape& shape,
                                          const at::Device& device);

}  // namespace hdetach
