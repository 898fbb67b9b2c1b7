// Sequential MNIST: one pixel a step, the digit as the target of the last step. Pixels are scaled
// to [0,1] and may be permuted, all images alike.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tasks/mnist_files.h"
#include "tasks/sequence_set.h"

namespace hdetach::tasks {

class PixelSet : public SequenceSet {
 public:
  // Images [first, first + count) of `data`. Step t reads pixel order[t].
  PixelSet(std::shared_ptr<const MnistData> data, int64_t first, int64_t count,
           std::vector<int64_t> order);

  int64_t size() const override { return count_; }
  int64_t steps() const override { return static_cast<int64_t>(order_.size()); }
  int64_t inputs() const override { return 1; }
  int64_t classes() const override { return 10; }
  int64_t target_steps() const override { return 1; }
  int64_t scored_steps() const override { return 1; }
  void read_codes(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                  uint8_t* codes) const override;
  const std::vector<float>& table() const override { return table_; }
  void read_targets(const std::vector<int64_t>& rows, int64_t begin, int64_t end,
                    uint8_t* target) const override;

 private:
  std::shared_ptr<const MnistData> data_;
  int64_t first_, count_;
  std::vector<int64_t> order_;
  std::vector<float> table_;  // [256]
};

}  // namespace hdetach::tasks
