#include "tasks/pixels.h"

#include <utility>

namespace hdetach::tasks {

PixelSet::PixelSet(std::shared_ptr<const MnistData> data, int64_t first, int64_t count,
                   std::vector<int64_t> order)
    : data_(std::move(data)), first_(first), count_(count), order_(std::move(order)) {
  for (int value = 0; value < 256; ++value) table_.push_back(static_cast<float>(value) / 255.0f);
}

void PixelSet::read_codes(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                          uint8_t* codes) const {
  const int64_t batch = static_cast<int64_t>(rows.size());
  for (int64_t b = 0; b < batch; ++b) {
    const uint8_t* const image = data_->images.data() + (first_ + rows[b]) * steps();
    for (int64_t step = begin; step < end; ++step) {
      codes[(step - begin) * batch + b] = image[order_[step]];
    }
  }
}

void PixelSet::read_targets(const std::vector<int64_t>& rows, int64_t /*begin*/, int64_t /*end*/,
                            uint8_t* target) const {
  // Only the last step has a target, so the stretch is that step.
  for (size_t b = 0; b < rows.size(); ++b) target[b] = data_->labels[first_ + rows[b]];
}

}  // namespace hdetach::tasks
