#include "models/softmax_head.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/flush_denormals.h"
#include "models/instruction_sets.h"

namespace hdetach {
namespace {

constexpr int64_t kBlock = 256;  // rows summed in float32 before double takes over
constexpr int64_t kMostClasses = 256;

// Logits of one row, in place of which the probabilities are left. Returns the loss.
inline float softmax_row(const SoftmaxHead& head, const float* h, uint8_t target,
                         float* probability) {
  for (int64_t k = 0; k < head.classes; ++k) {
    const float* const weight = head.weight + k * head.hidden;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < head.hidden; ++i) sum += weight[i] * h[i];
    probability[k] = sum + head.bias[k];
  }
  float most = probability[0];
  for (int64_t k = 1; k < head.classes; ++k) most = std::max(most, probability[k]);
  const float wanted = probability[target] - most;
  float sum = 0;
  for (int64_t k = 0; k < head.classes; ++k) {
    probability[k] = std::exp(probability[k] - most);
    sum += probability[k];
  }
  for (int64_t k = 0; k < head.classes; ++k) probability[k] /= sum;
  return std::log(sum) - wanted;
}

HDETACH_CLONES
HeadScore score_block(const SoftmaxHead& head, const float* h, const uint8_t* target, int64_t begin,
                      int64_t end, int64_t scored_from) {
  HeadScore score;
  float probability[kMostClasses];
  for (int64_t row = begin; row < end; ++row) {
    score.loss += softmax_row(head, h + row * head.hidden, target[row], probability);
    if (row < scored_from) continue;
    const auto* const best = std::max_element(probability, probability + head.classes);
    score.correct += best - probability == target[row];
  }
  return score;
}

HDETACH_CLONES
double gradient_block(const SoftmaxHead& head, const float* h, const uint8_t* target, int64_t begin,
                      int64_t end, float per_row, float* dh, float* gradient) {
  const int64_t hidden = head.hidden, stride = hidden + 1;
  std::fill(gradient, gradient + head.classes * stride, 0.0f);
  double loss = 0;
  float probability[kMostClasses];
  for (int64_t row = begin; row < end; ++row) {
    const float* const from = h + row * hidden;
    float* const to = dh + row * hidden;
    loss += softmax_row(head, from, target[row], probability);
    probability[target[row]] -= 1.0f;
    for (int64_t k = 0; k < head.classes; ++k) {
      const float dlogit = probability[k] * per_row;
      const float* const weight = head.weight + k * hidden;
      float* const dweight = gradient + k * stride;
      if (k == 0) {
#pragma omp simd
        for (int64_t i = 0; i < hidden; ++i) to[i] = dlogit * weight[i];
      } else {
#pragma omp simd
        for (int64_t i = 0; i < hidden; ++i) to[i] += dlogit * weight[i];
      }
#pragma omp simd
      for (int64_t i = 0; i < hidden; ++i) dweight[i] += dlogit * from[i];
      dweight[hidden] += dlogit;
    }
  }
  return loss;
}

int64_t blocks_of(int64_t rows) { return (rows + kBlock - 1) / kBlock; }

}  // namespace

HeadScore score(const SoftmaxHead& head, const float* h, const uint8_t* target, int64_t rows,
                int64_t scored_from) {
  std::vector<HeadScore> blocks(blocks_of(rows));
  at::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    for (int64_t b = begin; b < end; ++b) {
      blocks[b] =
          score_block(head, h, target, b * kBlock, std::min(rows, (b + 1) * kBlock), scored_from);
    }
  });
  HeadScore total;
  for (const HeadScore& block : blocks) {
    total.loss += block.loss;
    total.correct += block.correct;
  }
  return total;
}

double SoftmaxHeadGradient::run(const SoftmaxHead& head, const float* h, const uint8_t* target,
                                int64_t rows, float* dh, float* dweight, float* dbias) {
  const int64_t blocks = blocks_of(rows), stride = head.hidden + 1, size = head.classes * stride;
  block_gradients_.resize(blocks * size);
  block_losses_.resize(blocks);
  const float per_row = 1.0f / static_cast<float>(rows);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    for (int64_t b = begin; b < end; ++b) {
      block_losses_[b] =
          gradient_block(head, h, target, b * kBlock, std::min(rows, (b + 1) * kBlock), per_row, dh,
                         block_gradients_.data() + b * size);
    }
  });
  for (int64_t k = 0; k < head.classes; ++k) {
    for (int64_t i = 0; i < stride; ++i) {
      double sum = 0;
      for (int64_t b = 0; b < blocks; ++b) sum += block_gradients_[b * size + k * stride + i];
      (i < head.hidden ? dweight[k * head.hidden + i] : dbias[k]) = static_cast<float>(sum);
    }
  }
  double loss = 0;
  for (const double block : block_losses_) loss += block;
  return loss / static_cast<double>(rows);
}

}  // namespace hdetach
