// A captioner judged: captions of a set of images, and their scores.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "models/caption_search.h"
#include "tasks/caption_metrics.h"
#include "tasks/caption_set.h"
#include "train/config.h"
#include "train/outcome.h"

namespace hdetach::train {

constexpr size_t kImagesAtOnce = 100;  // are captioned side by side

// What the model says of the images at these rows of the features, each given with its place among
// the rows, in their order. False when `go_on`, told the share that is done, says no.
bool find_captions(const Config& config, Captioner& model, const tasks::ImageFeatures& features,
                   const std::vector<int64_t>& rows, const SearchOptions& options,
                   const std::function<void(size_t, const Found&)>& take,
                   const std::function<bool(double)>& go_on, size_t at_once = kImagesAtOnce);

// The model's caption of each image beside its references, searched for with a beam of that width.
// Empty when `go_on` says no.
std::optional<std::vector<tasks::CaptionPair>> caption_images(
    const Config& config, Captioner& model, const tasks::CaptionData& data,
    const std::vector<tasks::CaptionedImage>& images, int64_t beam,
    const std::function<bool(double)>& go_on);

// The mean loss of the references, so many of each image.
std::optional<double> reference_loss(const Config& config, Captioner& model,
                                     const tasks::CaptionData& data,
                                     const std::vector<tasks::CaptionedImage>& images,
                                     const std::function<bool(double)>& go_on);

// Loss aside: the measure is CIDEr. METEOR is there when `config.wordnet` has its tables and it is
// asked for.
Score score_captions(const Config& config, const std::vector<tasks::CaptionPair>& captions,
                     bool with_meteor);

}  // namespace hdetach::train
