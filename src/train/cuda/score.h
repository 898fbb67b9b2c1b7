// The kernels of an evaluation other than the LSTM's forward sweep: one launch for all models.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "train/cuda/update.h"

namespace hdetach::train {

// Steps [begin, begin + steps) of the sequences [first_row, first_row + rows).
struct StretchArgs {
  const SetView* sets;  // [R]
  int64_t count;        // R
  int64_t begin, steps, all_steps;
  int64_t first_row, rows, inputs;
  float* x;  // [R, steps, rows, inputs]
};
void launch_gather(const StretchArgs& args, cudaStream_t stream);

// Adds to each sequence's loss and correct answers those of the steps [from, steps) of a stretch.
struct ScoreArgs {
  const SetView* sets;  // [R]
  int64_t count;        // R
  int64_t begin, from, steps, all_steps;
  int64_t target_steps, first_scored;
  int64_t first_row, rows, size;  // size: sequences of the whole set
  int64_t hidden, classes;        // at most kMostClasses
  const float* h;                 // [R, steps, rows, H]
  const float* weight;            // [R, classes, H]
  const float* bias;              // [R, classes]
  double* losses;                 // [R, size]
  int32_t* correct;               // [R, size]
};
void launch_score(const ScoreArgs& args, cudaStream_t stream);

}  // namespace hdetach::train
