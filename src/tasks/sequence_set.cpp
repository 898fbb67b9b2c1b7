#include "tasks/sequence_set.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "op/random_bits.h"

namespace hdetach::tasks {

void SequenceSet::read_inputs(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                              float* x) const {
  std::vector<uint8_t> codes((end - begin) * rows.size());
  read_codes(rows, begin, end, codes.data());
  const float* const vectors = table().data();
  const int64_t width = inputs(), count = static_cast<int64_t>(codes.size());
  if (width == 1) {
    for (int64_t i = 0; i < count; ++i) x[i] = vectors[codes[i]];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(vectors + codes[i] * width, width, x + i * width);
  }
}

std::vector<int64_t> shuffled(int64_t size, uint64_t seed) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = size - 1; i > 0; --i) {
    std::swap(order[i], order[random_below(seed, i, i + 1)]);
  }
  return order;
}

std::vector<int64_t> pass_order(int64_t size, uint64_t seed, uint64_t pass) {
  return shuffled(size, random_bits(seed, pass));
}

Sampler::Sampler(Sampling sampling, int64_t size, uint64_t seed)
    : sampling_(sampling), size_(size), seed_(seed), pass_(std::numeric_limits<uint64_t>::max()) {}

void Sampler::minibatch(int64_t update, std::vector<int64_t>& rows) {
  uint64_t n = static_cast<uint64_t>(update) * rows.size();
  for (int64_t& row : rows) {
    if (sampling_ == Sampling::kWithReplacement) {
      row = random_below(seed_, n++, size_);
      continue;
    }
    if (pass_ != n / size_) {
      pass_ = n / size_;
      order_ = pass_order(size_, seed_, pass_);
    }
    row = order_[n++ % size_];
  }
}

}  // namespace hdetach::tasks
