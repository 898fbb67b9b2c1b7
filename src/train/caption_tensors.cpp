#include "train/caption_tensors.h"

#include <ATen/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace hdetach::train {
namespace {

at::Tensor whole_numbers(const std::vector<int32_t>& codes, int64_t steps,
                         const at::Device& device) {
  const auto rows = static_cast<int64_t>(codes.size()) / steps;
  return at::from_blob(const_cast<int32_t*>(codes.data()), {steps, rows}, at::kInt)
      .to(device, at::kLong);
}

}  // namespace

at::Device device_of(const Config& config) {
  return at::Device(config.device == "cuda" ? at::kCUDA : at::kCPU);
}

at::Tensor gather_features(const tasks::ImageFeatures& features, const std::vector<int64_t>& rows,
                           const at::Device& device) {
  const int64_t size = features.positions() * features.channels();
  const at::Tensor out =
      at::empty({static_cast<int64_t>(rows.size()), features.positions(), features.channels()});
  for (size_t i = 0; i < rows.size(); ++i) {
    features.read(rows[i], out.data_ptr<float>() + static_cast<int64_t>(i) * size);
  }
  return out.to(device);
}

CaptionTensors tensors_of(const tasks::CaptionBatch& batch, const tasks::ImageFeatures& features,
                          const std::vector<tasks::CaptionedImage>& set, const at::Device& device) {
  const auto rows = static_cast<int64_t>(batch.lengths.size());
  const auto images = static_cast<int64_t>(batch.images.size());
  std::vector<int64_t> feature_rows;
  for (const int64_t image : batch.images) feature_rows.push_back(set[image].row);
  CaptionTensors out;
  out.features = gather_features(features, feature_rows, device);
  out.inputs = whole_numbers(batch.inputs, batch.steps, device);
  out.targets = whole_numbers(batch.targets, batch.steps, device);
  out.lengths = at::empty({rows}, at::kLong);
  std::copy(batch.lengths.begin(), batch.lengths.end(), out.lengths.data_ptr<int64_t>());
  at::Tensor image = at::empty({rows}, at::kLong);
  for (int64_t r = 0; r < rows; ++r) image.data_ptr<int64_t>()[r] = r / (rows / images);
  out.image = image.to(device);
  return out;
}

}  // namespace hdetach::train
