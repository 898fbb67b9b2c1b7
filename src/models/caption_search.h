// Captions out of a trained captioner: greedy (a beam of one) and beam search.
//
// Every step puts each word it may to each hypothesis of an image and keeps the best, as many as
// the beam has places. One that ends leaves and takes its place along, so a beam of one is greedy
// search and a wide enough beam is exhaustive. Hypotheses under way are equally long and compare by
// the sum of their words' log probabilities. Equals: the better hypothesis of the step before comes
// first, then the lower code.
#pragma once

#include <cstdint>
#include <vector>

namespace at {
class Tensor;
}

namespace hdetach {

class Captioner;

struct SearchOptions {
  int64_t beam = 1;
  int64_t most_words = 16;  // a caption of so many words ends there, whatever else is probable
  // Captions that ended compare by log probability / (words + 1)^length_power, the one that ended
  // first among equals. 0: the sum, so the answer is the most probable caption found and nothing
  // has to be tuned; the price is that wide beams lean towards short captions. 1: the mean.
  double length_power = 0;
  bool attention = false;  // keep where the model looked
  // As in tasks/vocabulary.h. Padding and start are no words of a caption, and the unknown word
  // scores nothing; leave it out of `never` to see where the model lacks a word.
  int32_t start = 1, end = 2;
  std::vector<int32_t> never = {0, 1, 3};
};

struct Found {
  std::vector<int32_t> words;                 // without start and end
  double log_probability = 0;                 // of the words and the end after them
  std::vector<std::vector<float>> attention;  // when asked for: [positions] for each word
};

// One caption for each image of `features` [images, positions, channels], all searched for side by
// side. A model that gives NaN for every word gets no caption: no words, log probability -infinity.
std::vector<Found> search(Captioner& captioner, const at::Tensor& features,
                          const SearchOptions& options);

}  // namespace hdetach
