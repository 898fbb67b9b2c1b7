#include "train/caption_tensors.h"

#include <ATen/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "op/host_memory.h"

namespace hdetach::train {

at::Device device_of(const Config& config) {
  return at::Device(config.device == "cuda" ? at::kCUDA : at::kCPU);
}

at::Tensor gather_features(const tasks::ImageFeatures& features, const std::vector<int64_t>& rows,
                           const at::Device& device) {
  const int64_t size = features.positions() * features.channels();
  const at::Tensor out =
      host_memory({static_cast<int64_t>(rows.size()), features.positions(), features.channels()},
                  at::kFloat, device);
  for (size_t i = 0; i < rows.size(); ++i) {
    features.read(rows[i], out.data_ptr<float>() + static_cast<int64_t>(i) * size);
  }
  return out.to(device, at::kFloat, /*non_blocking=*/true);
}

CaptionTensors tensors_of(const tasks::CaptionBatch& batch, const tasks::ImageFeatures& features,
                          const std::vector<tasks::CaptionedImage>& set, const at::Device& device) {
  const auto rows = static_cast<int64_t>(batch.lengths.size());
  const auto images = static_cast<int64_t>(batch.images.size());
  std::vector<int64_t> feature_rows;
  for (const int64_t image : batch.images) feature_rows.push_back(set[image].row);
  CaptionTensors out;
  out.features = gather_features(features, feature_rows, device);
  // Inputs, targets and image in one copy.
  const auto words = static_cast<int64_t>(batch.inputs.size());
  const at::Tensor numbers = host_memory({2 * words + rows}, at::kLong, device);
  int64_t* next = numbers.data_ptr<int64_t>();
  next = std::copy(batch.inputs.begin(), batch.inputs.end(), next);
  next = std::copy(batch.targets.begin(), batch.targets.end(), next);
  for (int64_t r = 0; r < rows; ++r) *next++ = r / (rows / images);
  const at::Tensor there = numbers.to(device, at::kLong, /*non_blocking=*/true);
  out.inputs = there.narrow(0, 0, words).view({batch.steps, rows});
  out.targets = there.narrow(0, words, words).view({batch.steps, rows});
  out.image = there.narrow(0, 2 * words, rows);
  out.lengths = at::empty({rows}, at::kLong);
  std::copy(batch.lengths.begin(), batch.lengths.end(), out.lengths.data_ptr<int64_t>());
  return out;
}

}  // namespace hdetach::train
