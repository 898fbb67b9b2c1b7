// A linear layer and the cross-entropy of its softmax in one sweep over the rows: logits are never
// stored, and each row of h is read once for loss, dh and dweight together.
#pragma once

#include <cstdint>
#include <vector>

namespace hdetach {

struct SoftmaxHead {
  int64_t hidden, classes;
  const float* weight;  // [classes, hidden]
  const float* bias;    // [classes]
};

struct HeadScore {
  double loss = 0;      // summed over the rows
  int64_t correct = 0;  // of the rows from `scored_from` on
};
HeadScore score(const SoftmaxHead& head,
                const float* h,         // [rows, hidden]
                const uint8_t* target,  // [rows]
                int64_t rows, int64_t scored_from);

// Gradients of the mean loss over the rows. Rows are summed in blocks of a fixed size, in order, so
// the bits do not depend on the number of threads.
class SoftmaxHeadGradient {
 public:
  double run(const SoftmaxHead& head,  // -> the mean loss
             const float* h,           // [rows, hidden]
             const uint8_t* target,    // [rows]
             int64_t rows,
             float* dh,       // [rows, hidden]
             float* dweight,  // [classes, hidden]
             float* dbias);   // [classes]

 private:
  std::vector<float> block_gradients_;  // [blocks, classes, hidden + 1], kept from call to call
  std::vector<double> block_losses_;
};

}  // namespace hdetach
