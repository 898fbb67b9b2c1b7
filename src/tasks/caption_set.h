// Images with captions: what a captioner is trained on and scored with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tasks/image_features.h"
#include "tasks/sequence_set.h"
#include "tasks/vocabulary.h"

namespace hdetach::tasks {

enum class Split;  // see caption_files.h

struct CaptionedImage {
  int64_t id = 0;   // as the outside names it
  int64_t row = 0;  // in the features
  // Codes, cut, without start and end. At least one; a caption without a word gives none.
  std::vector<std::vector<int32_t>> captions;
  std::vector<std::string> references;  // tokenised and whole, for the scores
};

struct CaptionData {
  Vocabulary vocabulary;  // of the training captions before they are cut
  std::shared_ptr<const ImageFeatures> features;
  std::vector<CaptionedImage> train, valid;
  std::vector<CaptionedImage> test;  // may be empty
  std::string checksum = {};         // as Task's; of the features only some images count
};

struct CaptionDataOptions {
  std::string folder;        // of either kind, see caption_files.h
  bool spatial = false;      // features by position, not their mean
  int64_t most_words = 16;   // longer captions are cut
  int64_t more_than = 5;     // words seen no more often are unknown
  int64_t train_images = 0;  // the first so many of the list; 0: all
  int64_t valid_images = 0;  // likewise
};

// Throws std::runtime_error, naming the file and line or id, on anything it cannot use.
CaptionData read_caption_data(const CaptionDataOptions& options);

// Images to be captioned by a model that is trained: references, no codes.
struct CaptionSplit {
  std::shared_ptr<const ImageFeatures> features;
  std::vector<CaptionedImage> images;
  std::vector<std::filesystem::path> files;  // of the images, empty where the list does not say
};

// The first `most` images of a split; 0: all. Throws likewise.
CaptionSplit read_caption_split(const std::string& folder, bool spatial, Split split, int64_t most);

// Rows of a minibatch: so many captions of each image, in the order of the images.
struct CaptionBatch {
  std::vector<int64_t> images;  // places in the set
  int64_t steps = 0;            // of the longest row
  // [steps, rows]: kStart and the words go in, the words and kEnd are to come out; kPadding after.
  std::vector<int32_t> inputs, targets;
  std::vector<int64_t> lengths;  // [rows], of inputs and of targets
};

// Minibatches of shuffled passes over the images. An image with more captions than asked for gives
// different ones from pass to pass, one with fewer gives some twice.
class CaptionSampler {
 public:
  // So many images a minibatch with so many captions each. `set` must stay alive.
  CaptionSampler(const std::vector<CaptionedImage>& set, int64_t images, int64_t captions,
                 uint64_t seed);
  // Minibatch number `update` (from 0), a function of it and the constructor's arguments alone.
  CaptionBatch minibatch(int64_t update);

 private:
  const std::vector<CaptionedImage>& set_;
  int64_t images_, captions_;
  uint64_t seed_;
  Sampler sampler_;  // keeps the order of a pass
};

// A minibatch of the images at these places, with the first captions of each.
CaptionBatch first_captions(const std::vector<CaptionedImage>& set,
                            const std::vector<int64_t>& images, int64_t captions);

}  // namespace hdetach::tasks
