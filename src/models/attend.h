// The attention of Soft Attention: what a caption's next step sees of its image.
#pragma once

#include <ATen/core/Tensor.h>

namespace hdetach {

// What all steps of some captions look at. The longest captions are the first rows, so that at each
// step those still under way are the first ones.
struct Sight {
  at::Tensor features;   // [rows, positions, channels]; has no gradient
  at::Tensor projected;  // [rows, positions, A]
  at::Tensor weight;     // [rows, A]: of the scores, the same for each row
};

struct Look {
  at::Tensor x;          // [n, embedding + channels]: the words and the features' mean, so weighed:
  at::Tensor attention;  // [n, positions], each row adds up to one; has no gradient
};

// attention = softmax over positions of weight . tanh(projected + query), for the first n rows.
//
// words: [n, embedding], query: [n, A]. The sight is changed to one that the next step must use:
// gradients then add up from step to step in one place, and rows that are done with fall away.
Look attend(const at::Tensor& words, const at::Tensor& query, Sight& sight);

}  // namespace hdetach
