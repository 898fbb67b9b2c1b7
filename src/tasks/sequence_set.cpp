#include "tasks/sequence_set.h"

#include <limits>
#include <numeric>
#include <utility>

#include "op/random_bits.h"

namespace hdetach::tasks {

std::vector<int64_t> shuffled(int64_t size, uint64_t seed) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = size - 1; i > 0; --i) {
    std::swap(order[i], order[random_below(seed, i, i + 1)]);
  }
  return order;
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
      order_ = shuffled(size_, random_bits(seed_, pass_));
    }
    row = order_[n++ % size_];
  }
}

}  // namespace hdetach::tasks
