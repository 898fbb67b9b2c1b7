// Minibatches of captions as tensors on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "models/captioner.h"
#include "tasks/caption_set.h"
#include "train/config.h"

namespace hdetach::train {

at::Device device_of(const Config& config);

// [images, positions, channels]
at::Tensor gather_features(const tasks::ImageFeatures& features, const std::vector<int64_t>& rows,
                           const at::Device& device);

CaptionTensors tensors_of(const tasks::CaptionBatch& batch, const tasks::ImageFeatures& features,
                          const std::vector<tasks::CaptionedImage>& set, const at::Device& device);

}  // namespace hdetach::train
