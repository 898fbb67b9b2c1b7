// Features of a ResNet-50 in a tenth of their size: bytes for the means over the image, the 32
// largest channels of each position for the rest. A folder holds, for every stretch of images,
//
//   FORMAT.json                          how many images, in which stretches, how they are coded
//   resnet50_pool_u8.STRETCH.bin         [images, channels] bytes, x = 16 (c / 255)^2
//   resnet50_7x7_top32_u16.STRETCH.bin   [images, positions, 32] channel and value in 16 bits
//   resnet50_7x7_top32_fill_f32.bin      [channels]: a channel's mean where it is not among the 32
#pragma once

#include <filesystem>
#include <memory>

#include "tasks/image_features.h"

namespace hdetach::tasks {

// Throws std::runtime_error, naming the file, on what it cannot decode and on files of wrong size.
std::shared_ptr<const ImageFeatures> open_coded_features(const std::filesystem::path& folder,
                                                         bool spatial);

}  // namespace hdetach::tasks
