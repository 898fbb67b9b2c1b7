#include "train/cuda/device_set.h"

#include <algorithm>

namespace hdetach::train {
namespace {

constexpr int64_t kChunk = 1 << 24;  // bytes that wait on the host at a time

// Row after row of `width` bytes, as read(row, bytes) gives them.
template <class Read>
DeviceArray<uint8_t> upload(int64_t size, int64_t width, const Stream& stream, const Read& read) {
  DeviceArray<uint8_t> array(size * width);
  const int64_t rows = std::clamp<int64_t>(kChunk / width, 1, size);
  std::vector<uint8_t> bytes(rows * width);
  for (int64_t first = 0; first < size; first += rows) {
    const int64_t count = std::min(rows, size - first);
    for (int64_t i = 0; i < count; ++i) read(first + i, bytes.data() + i * width);
    stream.copy(array.get() + first * width, bytes.data(), count * width);
    stream.wait();  // before the bytes change
  }
  return array;
}

}  // namespace

DeviceSet::DeviceSet(std::shared_ptr<const tasks::SequenceSet> set, const Stream& stream)
    : set_(std::move(set)) {
  const int64_t steps = set_->steps(), target_steps = set_->target_steps();
  std::vector<int64_t> row(1);
  codes_ = upload(set_->size(), steps, stream, [&](int64_t i, uint8_t* codes) {
    row[0] = i;
    set_->read_codes(row, 0, steps, codes);
  });
  targets_ = upload(set_->size(), target_steps, stream, [&](int64_t i, uint8_t* target) {
    row[0] = i;
    set_->read_targets(row, steps - target_steps, steps, target);
  });
  const std::vector<float>& table = set_->table();
  table_ = DeviceArray<float>(table.size());
  stream.copy(table_.get(), table.data(), table.size());
}

}  // namespace hdetach::train
