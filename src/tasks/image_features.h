// What a convolutional network made of images, as floats. Files stay memory-mapped: a batch is
// gathered without a copy of the whole set.
#pragma once

#include <cstdint>

namespace hdetach::tasks {

class ImageFeatures {
 public:
  virtual ~ImageFeatures() = default;
  virtual int64_t images() const = 0;
  virtual int64_t positions() const = 0;  // 1: the mean over the image
  virtual int64_t channels() const = 0;
  virtual void read(int64_t image, float* to) const = 0;  // [positions, channels]
};

}  // namespace hdetach::tasks
