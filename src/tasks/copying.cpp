#include "tasks/copying.h"

#include <algorithm>
#include <stdexcept>

#include "op/random_bits.h"

namespace hdetach::tasks {

CopyingSet::CopyingSet(int64_t symbols, int64_t delay, Encoding encoding, int64_t size,
                       uint64_t seed)
    : symbols_(symbols), delay_(delay), encoding_(encoding) {
  if (symbols < 1 || symbols > kMostSymbols || delay < 1 || size < 1) {
    throw std::invalid_argument("[CopyingSet] symbols must be in 1..20, delay and size above 0");
  }
  draws_.resize(size);
  for (int64_t i = 0; i < size; ++i) draws_[i] = random_bits(seed, i);
  table_.resize(kTokens * inputs());
  for (int64_t k = 0; k < kTokens; ++k) {
    if (encoding == Encoding::kScalar) {
      table_[k] = static_cast<float>(k);
    } else {
      table_[k * kTokens + k] = 1.0f;
    }
  }
}

void CopyingSet::read_codes(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                            uint8_t* codes) const {
  const int64_t batch = static_cast<int64_t>(rows.size()), delimiter = symbols_ + delay_ - 1;
  std::fill(codes, codes + (end - begin) * batch, uint8_t{0});
  for (int64_t step = begin; step < std::min(end, symbols_); ++step) {
    for (int64_t b = 0; b < batch; ++b) codes[(step - begin) * batch + b] = symbol(rows[b], step);
  }
  if (begin <= delimiter && delimiter < end) {
    uint8_t* const at = codes + (delimiter - begin) * batch;
    std::fill(at, at + batch, static_cast<uint8_t>(kTokens - 1));
  }
}

void CopyingSet::read_targets(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                              uint8_t* target) const {
  const int64_t batch = static_cast<int64_t>(rows.size()), first = symbols_ + delay_;
  std::fill(target, target + (end - begin) * batch, uint8_t{0});
  for (int64_t step = std::max(begin, first); step < end; ++step) {
    for (int64_t b = 0; b < batch; ++b) {
      target[(step - begin) * batch + b] = symbol(rows[b], step - first);
    }
  }
}

}  // namespace hdetach::tasks
