// Features in safetensors files, one for each split:
//
//   features   [images, channels] or [images, positions, channels], F32, F16 or BF16
//   ids        [images], I64, as the list of captions names the images
//
// The files stay mapped. A file of features by position serves both kinds of model: where they are
// asked for without positions, the mean over these is given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tasks/image_features.h"

namespace hdetach::tasks {

constexpr char kFeaturesArray[] = "features", kIdsArray[] = "ids";

struct TensorFeatures {
  std::shared_ptr<const ImageFeatures> features;  // of all files, one after the other
  std::unordered_map<int64_t, int64_t> rows;      // by id
};

// Throws std::runtime_error, naming the file, on what is not as above, on an id that stands twice
// and on files that do not match. read() throws as well, on a number that is not finite.
TensorFeatures open_tensor_features(const std::vector<std::filesystem::path>& files, bool spatial);

}  // namespace hdetach::tasks
