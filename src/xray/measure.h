// The x-ray of a network on a batch: where its gradient flows, as a record.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "xray/notation.h"
#include "xray/record.h"

namespace hdetach::xray {

// A network on a batch, float64 on the CPU, and what the loss reads of it.
struct Probe {
  std::vector<Layer> layers;
  at::Tensor x;        // [T,B,I]
  at::Tensor lengths;  // [B] int64, or undefined where every row has all steps
  // A softmax over classes with the mean cross-entropy of all targets ...
  at::Tensor head_weight, head_bias;  // [classes,H], [classes]
  at::Tensor targets;                 // [T,B] int64, -1 where a step has none
  // ... or, where those are undefined, a gradient given for the last step.
  at::Tensor dh_last;  // [B,H]
};

struct MeasureOptions {
  std::vector<double> detach = {0};
  bool cell_path = false;     // the paper's c-detach
  int64_t highest_order = 3;  // what went through h more often is the rest
  std::vector<int64_t> lags;  // empty means usual_lags()
};

// One record for each detach, without epoch, update and weight scale. With detach q every step's
// gradient into h (or c) is multiplied by 1 - q: that is damping, and the mean over the draws of
// h-detach (the paper's corollary of theorem 2), so there is nothing to draw.
std::vector<Record> measure(const Probe& probe, const MeasureOptions& options);

}  // namespace hdetach::xray
