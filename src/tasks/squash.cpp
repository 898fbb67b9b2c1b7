#include "tasks/squash.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hdetach::tasks {
namespace {

// The pixels along one side that a new pixel is made of.
struct Window {
  int64_t begin;
  std::vector<float> weights;  // sum to 1
};

std::vector<Window> windows(int64_t size, int64_t side) {
  const double reduction = static_cast<double>(size) / static_cast<double>(side);
  const double reach = std::max(reduction, 1.0);
  std::vector<Window> result;
  for (int64_t i = 0; i < side; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * reduction;
    const auto begin = std::max<int64_t>(0, std::llround(centre - reach));
    const auto end = std::min<int64_t>(size, std::llround(centre + reach));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t at = begin; at < end; ++at) {
      const double distance = std::abs(static_cast<double>(at) + 0.5 - centre) / reach;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    Window window{begin, {}};
    for (const double weight : weights) window.weights.push_back(static_cast<float>(weight / sum));
    result.push_back(std::move(window));
  }
  return result;
}

}  // namespace

void squash(const jpeg::Image& image, int64_t side, float* to) {
  // First each row, then the columns of those.
  std::vector<float> narrow(image.height * side * 3, 0.0f);  // [height, side, 3]
  const std::vector<Window> across = windows(image.width, side), down = windows(image.height, side);
  for (int64_t y = 0; y < image.height; ++y) {
    float* out = narrow.data() + y * side * 3;
    for (const Window& window : across) {
      const uint8_t* in = image.pixels.data() + (y * image.width + window.begin) * 3;
      float sums[3] = {0, 0, 0};
      for (const float weight : window.weights) {
        for (float& sum : sums) sum += weight * static_cast<float>(*in++);
      }
      out = std::copy(sums, sums + 3, out);
    }
  }
  std::fill(to, to + side * side * 3, 0.0f);
  for (const Window& window : down) {
    const float* in = narrow.data() + window.begin * side * 3;
    for (const float weight : window.weights) {
      for (int64_t i = 0; i < side * 3; ++i) to[i] += weight * in[i];
      in += side * 3;
    }
    to += side * 3;
  }
}

}  // namespace hdetach::tasks
