// A ResNet of bottleneck blocks without its last layer: what it makes of images is the features
// that captions are written from. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/resnet_weights.h"

namespace hdetach {

class ResNet {
 public:
  static constexpr int64_t kChannels = 2048;
  // Pixels each way of an image that is to have 1 (the mean), 49 or 196 positions.
  static constexpr int64_t side(int64_t positions) { return (positions == 196 ? 14 : 7) * 32; }

  static bool cuda_is_available();  // to LibTorch

  ResNet(const ResNetWeights& weights, bool on_cuda);
  ~ResNet();

  // `pixels` are [images, side, side, 3], red, green and blue from 0 to 255. The result is
  // [images, positions, kChannels], row by row of the image; where `pooled`, the mean over the
  // positions.
  std::vector<float> features(const std::vector<float>& pixels, int64_t side, bool pooled) const;

 private:
  struct Layers;
  std::unique_ptr<const Layers> layers_;
};

}  // namespace hdetach
