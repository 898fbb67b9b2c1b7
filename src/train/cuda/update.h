// The kernels of an update other than the LSTM's sweeps. Each is one launch for all replicas, adds
// its work to the stream and does not wait; none uses atomics on floats, and every sum has an order
// that depends on the shapes of one replica alone, so a run has the same bits among others as
// alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "train/cuda/replica.h"

namespace hdetach::train {

// The rows of the minibatch, their inputs and targets, and the draw of the scales.
struct PrepareArgs {
  const Replica* replicas;
  Decision* decisions;  // cleared: a replica that is not active must not repeat its last one
  int64_t count;        // R
  int64_t steps, batch, inputs, target_steps, layers;
  float* x;          // [R, T, B, I]
  uint8_t* targets;  // [R, target_steps, B]
  float* scales;     // [R, layers, T]
};
void launch_prepare(const PrepareArgs& args, cudaStream_t stream);

// The softmax head over the last target_steps steps: loss, dh, and its own gradients in parts.
struct HeadArgs {
  const Replica* replicas;
  int64_t count;  // R
  int64_t rows;   // target_steps * B of each replica
  int64_t hidden, classes;
  const float* h;          // [R, rows, H], replicas `stride` floats apart
  float* dh;               // likewise
  int64_t stride;          // T * B * H
  const float* weight;     // [R, classes, H]
  const float* bias;       // [R, classes]
  const uint8_t* targets;  // [R, rows]
  float* parts;            // [R, head_parts(), classes * H + classes]
  double* losses;          // [R, head_parts()]: sums over rows
};
constexpr int64_t kMostClasses = 16;
int64_t head_parts(int64_t rows, int64_t hidden);
void launch_head(const HeadArgs& args, cudaStream_t stream);

// A piece of one parameter tensor: what a block of measure or Adam works on.
struct Piece {
  int64_t weight, gradient;  // where the tensors [R, numel] start in the flat buffers
  int64_t numel;             // of the tensor of one replica
  int64_t first, count;      // the piece within it
  int64_t part;              // where the tensor starts in a head part; -1: gradient is complete
};
constexpr int64_t kPiece = 2048, kHeadPiece = 32;  // floats of a piece at most

// Completes the head's gradients, then the global norm, whether the update counts and how; writes
// the record and moves the replica on.
struct MeasureArgs {
  Replica* replicas;
  int64_t count;  // R
  const Piece* pieces;
  int64_t piece_count;
  float* gradients;
  const float* parts;  // of HeadArgs
  const double* losses;
  int64_t head_parts, part_size;  // part_size = classes * H + classes
  int64_t rows;                   // over which the loss is the mean
  int64_t draws_per_layer, layers;
  double* squares;     // [R, pieces]
  unsigned* finished;  // [R], zero before and after
  Decision* decisions;
  Record* records;  // [R, capacity]
  int64_t capacity;
};
void launch_measure(const MeasureArgs& args, cudaStream_t stream);

struct AdamArgs {
  const Decision* decisions;
  int64_t count;  // R
  const Piece* pieces;
  int64_t piece_count;
  const float* gradients;
  float *weights, *first_moments, *second_moments;
};
void launch_adam(const AdamArgs& args, cudaStream_t stream);

}  // namespace hdetach::train
