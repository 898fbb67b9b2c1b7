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
}

uint8_t CopyingSet::token(int64_t row, int64_t step) const {
  if (step < symbols_) return symbol(row, step);
  return step == symbols_ + delay_ - 1 ? kTokens - 1 : 0;
}

void CopyingSet::read_inputs(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                             float* x) const {
  const int64_t width = inputs(), batch = static_cast<int64_t>(rows.size());
  std::fill(x, x + (end - begin) * batch * width, 0.0f);
  for (int64_t step = begin; step < end; ++step) {
    const bool blank = step >= symbols_ && step != symbols_ + delay_ - 1;
    if (blank && encoding_ == Encoding::kScalar) continue;
    for (int64_t b = 0; b < batch; ++b) {
      const uint8_t value = token(rows[b], step);
      float* const at = x + ((step - begin) * batch + b) * width;
      if (encoding_ == Encoding::kScalar) {
        *at = value;
      } else {
        at[value] = 1.0f;
      }
    }
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
