// A ResNet-50 of random numbers under torchvision's names, and the file that holds it.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "op/random_bits.h"

namespace hdetach {

constexpr int64_t kResNet50Blocks[4] = {3, 4, 6, 3};

class ResNetArrays {
 public:
  struct Array {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  struct Names {
    std::string convolution, norm;
  };

  // `last`: the size of the features, 1 or less. An LSTM saturates where they are large.
  explicit ResNetArrays(uint64_t seed, double last = 1) : seed_(seed) {
    add("conv1", "bn1", 64, 3, 7, 1);
    int64_t channels = 64;
    for (int64_t stage = 0; stage < 4; ++stage) {
      const int64_t width = int64_t{64} << stage;
      const double gain = stage == 3 ? last : 1;
      for (int64_t block = 0; block < kResNet50Blocks[stage]; ++block) {
        const std::string at = fmt::format("layer{}.{}.", stage + 1, block);
        add(at + "conv1", at + "bn1", width, channels, 1, 1);
        add(at + "conv2", at + "bn2", width, width, 3, 1);
        // sums of blocks stay moderate
        add(at + "conv3", at + "bn3", 4 * width, width, 1, 0.3 * gain);
        if (block == 0) {
          add(at + "downsample.0", at + "downsample.1", 4 * width, channels, 1, gain);
        }
        channels = 4 * width;
      }
    }
  }

  const Array& operator[](const std::string& name) const { return arrays_.at(name); }
  const std::vector<Names>& names() const { return names_; }

  std::string file() const {
    std::vector<safetensors::View> views;
    for (const auto& [name, array] : arrays_) {
      views.push_back({name, "F32", array.shape, array.values.data()});
    }
    return safetensors::serialize(views, {});
  }

 private:
  void add(const std::string& convolution, const std::string& norm, int64_t out, int64_t in,
           int64_t kernel, double gain) {
    names_.push_back({convolution, norm});
    const double bound = std::sqrt(6.0 / static_cast<double>(in * kernel * kernel));
    put(convolution + ".weight", {out, in, kernel, kernel}, -bound, bound);
    put(norm + ".weight", {out}, 0.5 * gain, 1.5 * gain);
    put(norm + ".bias", {out}, -0.2, 0.2);
    put(norm + ".running_mean", {out}, -0.2, 0.2);
    put(norm + ".running_var", {out}, 0.5, 1.5);
  }
  void put(const std::string& name, const std::vector<int64_t>& shape, double low, double high) {
    int64_t size = 1;
    for (const int64_t side : shape) size *= side;
    Array& array = arrays_[name] = {shape, std::vector<float>(size)};
    for (float& value : array.values) {
      value = static_cast<float>(low + (high - low) * random_uniform(seed_, drawn_++));
    }
  }

  uint64_t seed_, drawn_ = 0;
  std::vector<Names> names_;
  std::map<std::string, Array> arrays_;
};

}  // namespace hdetach
