// Measuring gradients and Adam's step on a GPU for tensors that lie apart, torch-free: one launch
// for all of them. Defined in cuda/tensor_optimiser.cu, or in no_cuda.cpp where the build has no
// CUDA. adam.h is what others use.
#pragma once

#include <cstdint>

namespace hdetach::train {

// Tensors cut into pieces, each of which is the work of one block. It is the argument of a launch:
// gradients lie elsewhere after every backward pass.
struct TensorTable {
  static constexpr int64_t kMost = 32;     // tensors; a launch takes 4 KB of arguments
  static constexpr int64_t kPiece = 4096;  // floats at most

  struct Entry {
    const float* gradient;
    float *weight, *first_moment, *second_moment;  // null where gradients are only measured
    int64_t size;
    int64_t first_piece;
  };
  Entry entries[kMost];
  int64_t count = 0, pieces = 0;

  // At most kMost of them.
  void add(int64_t size, const float* gradient, float* weight = nullptr,
           float* first_moment = nullptr, float* second_moment = nullptr) {
    entries[count++] = {gradient, weight, first_moment, second_moment, size, pieces};
    pieces += (size + kPiece - 1) / kPiece;
  }
};

// What one block has found. Added up in the order of the blocks they give the same bits every time.
struct BlockSums {
  double squares, clamped_squares;
  uint32_t largest;  // magnitude, as its bits: they are in its order, and NaN's are above all
  float loss;        // handed on, the same in all
};
constexpr int64_t kMeasureBlocks = 512;

// Both add their work to the stream (a cudaStream_t) and do not wait. `clamp` is the largest
// magnitude of each number of the gradients; infinity: any.
void launch_tensor_measure(const TensorTable& table, const float* loss, float clamp,
                           BlockSums* sums,  // [kMeasureBlocks], all on the device
                           void* stream);

struct AdamStep {
  float gradient_scale, step, root_correction;  // step = lr / (1 - beta1^t)
};
void launch_tensor_adam(const TensorTable& table, float clamp, const AdamStep& step, void* stream);

}  // namespace hdetach::train
