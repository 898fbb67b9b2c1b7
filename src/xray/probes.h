// Networks for the x-ray: random ones, and those of runs on the first rows of their validation set.
#pragma once

#include <cstdint>
#include <vector>

#include "models/named_tensor.h"
#include "tasks/caption_set.h"
#include "tasks/sequence_set.h"
#include "xray/measure.h"

namespace hdetach::xray {

// Sequences of a batch: of a run, and of a random network, whose units are all alike.
constexpr int64_t kProbeRows = 32, kRandomRows = 16;

// One layer whose weights start as nn.LSTM's, U(-1/sqrt(H), 1/sqrt(H)), times `weight_scale`; one
// input a step from U(-sqrt(3), sqrt(3)), variance 1; a loss that reads the last h in a random
// direction. The same seed gives the same network, apart from the scale, on any machine.
Probe random_probe(int64_t hidden, int64_t steps, double weight_scale, uint64_t seed);

// Parameters by the names they have in files, on any device.
Probe classifier_probe(const std::vector<NamedTensor>& parameters, const tasks::SequenceSet& set);
// Show and Tell, with so many captions of an image.
Probe show_tell_probe(const std::vector<NamedTensor>& parameters,
                      const tasks::ImageFeatures& features,
                      const std::vector<tasks::CaptionedImage>& images, int64_t captions);

}  // namespace hdetach::xray
