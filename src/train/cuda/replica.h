// What the kernels of an update know of each run: PODs in device memory, one for each replica.
#pragma once

#include <cstdint>

namespace hdetach::train {

// A set of sequences on the device.
struct SetView {
  const uint8_t* codes;    // [size, steps]
  const uint8_t* targets;  // [size, target_steps]
  const float* table;      // [256, inputs]: the input of each code
};

struct Replica {
  SetView set;
  uint64_t size;         // sequences in the set
  const int32_t* order;  // [passes, size], pass p at p % passes; null: drawn with replacement
  uint64_t passes;
  uint64_t minibatch_seed, detach_seed;
  double lr, clip, detach;
  int64_t update, adam_steps;
  uint64_t drawn;
  int32_t damp, separate, stop_on_divergence;
  int32_t active;   // 0: nothing of this run changes
  int32_t records;  // written since the host last looked
};

// What the optimiser does with the gradients of this update.
struct Decision {
  int32_t apply;
  float gradient_scale, step, root_correction;  // as in adam.cpp
};

struct Record {
  double loss, norm;
  int32_t applied, clipped;
};

}  // namespace hdetach::train
