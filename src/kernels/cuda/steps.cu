// cuda-steps: for wide layers. One launch a step and direction, tensor cores with float32's error.
//
// Strategy: w_hh streams from L2 (16 MB at H=1024) every step. A cluster of blocks owns 64 rows of
// the product and 32 or 64 batch rows and shares the sum (step_product.cuh), with the cluster so
// large that some 128 blocks are busy; the activations are at the product's end, in the same
// launch. The next step's launch is overlapped (programmatic dependent launch): its blocks fetch
// their first weights while this step ends. Going back, tiles whose rows are all detached skip the
// product.
//
// Limits: 4,194,240 rows of the batch (a grid is no higher), and those of too_large() (sizes.h).
// Below H = 256 or so a step is all launch: see cuda-resident. At H=512 and 32 rows the host, which
// queues the launches, is the limit.
// Measured by `hdetach bench --device cuda`; figures are in docs/kernels.md.
#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sizes.h"
#include "kernels/cuda/step_kernels.cuh"

namespace hdetach::cuda {
namespace {

constexpr int kBlocksWanted = 132, kLeastK = 64;

struct Grid {
  int row_tiles, column_tiles, cluster;
};

// A function of the sizes alone, replicas apart, and so are the bits.
Grid make_grid(int64_t rows, int64_t k, int64_t batch, int columns) {
  Grid grid{parts(rows, 64), parts(batch, columns), 1};
  const int tiles = grid.row_tiles * grid.column_tiles;
  while (grid.cluster < kLargestCluster && 2 * grid.cluster * tiles <= kBlocksWanted &&
         k / (2 * grid.cluster) >= kLeastK) {
    grid.cluster *= 2;
  }
  return grid;
}

template <typename Step>
void launch(void (*kernel)(Step, int), const Step& step, const Grid& grid, int shared_bytes, int t,
            bool follows_a_step) {
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(grid.cluster), 1, 1};
  // Only behind a launch of ours: what is read early was written before that one began.
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.row_tiles * grid.cluster),
                        static_cast<unsigned>(grid.column_tiles),
                        static_cast<unsigned>(step.args.shape.replicas));
  config.blockDim = dim3(kStepThreads);
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.stream = static_cast<cudaStream_t>(step.args.stream);
  config.attrs = attributes;
  config.numAttrs = follows_a_step ? 2 : 1;
  check(cudaLaunchKernelEx(&config, kernel, step, t), "launch of a step");
}

template <typename Step>
void allow_shared_memory(void (*kernel)(Step, int), int bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "cudaFuncSetAttribute(step)");
}

template <int kColumns>
void forward_steps(const ForwardStep& step) {
  const LstmShape& s = step.args.shape;
  constexpr int kBytes = ForwardProduct<kColumns>::kSharedBytes;
  allow_shared_memory(forward_step<kColumns>, kBytes);
  const Grid grid = make_grid(4 * s.hidden, s.hidden, s.batch, kColumns);
  for (int t = 0; t < s.steps; ++t) {
    launch(forward_step<kColumns>, step, grid, kBytes, t, /*follows_a_step=*/t > 0);
  }
}

template <int kColumns>
void backward_steps(const BackwardStep& step) {
  const LstmShape& s = step.args.shape;
  constexpr int kBytes = BackwardProduct<kColumns>::kSharedBytes;
  allow_shared_memory(backward_step<kColumns>, kBytes);
  const Grid grid = make_grid(s.hidden, 4 * s.hidden, s.batch, kColumns);
  const int last = step.args.dh0 != nullptr ? -1 : 0;
  for (int t = static_cast<int>(s.steps) - 1; t >= last; --t) {
    launch(backward_step<kColumns>, step, grid, kBytes, t, /*follows_a_step=*/t < s.steps - 1);
  }
}

size_t carry_bytes(const LstmShape& s) {  // rounded up, so that what follows is aligned
  return (static_cast<size_t>(s.replicas * s.batch * s.hidden) * sizeof(float) + 63) / 64 * 64;
}

size_t forward_workspace(const LstmShape& shape, int) { return gate_bytes(shape); }
size_t backward_workspace(const LstmShape& shape, int) {
  return gate_bytes(shape) + carry_bytes(shape) + weight_gradient_workspace(shape);
}

// The reference takes the others: with so many rows, its products fill a GPU.
const char* unsuited(const LstmShape& shape) {
  constexpr int64_t kMostTiles = 65535;
  return shape.batch <= 64 * kMostTiles ? too_large(shape) : "B must be at most 4194240";
}

void forward(const ForwardArgs& args) {
  ForwardStep step{args, args.gates, false};
  if (step.projected == nullptr) step.projected = static_cast<float*>(args.workspace);
  step.aligned = args.shape.hidden % 4 == 0 && starts_at_16_bytes(args.weights.w_hh) &&
                 starts_at_16_bytes(args.h) && starts_at_16_bytes(args.h0);
  project_inputs(args, step.projected);
  if (args.shape.batch > 32) {
    forward_steps<64>(step);
  } else {
    forward_steps<32>(step);
  }
}

void backward(const BackwardArgs& args) {
  char* workspace = static_cast<char*>(args.workspace);
  BackwardStep step{args, reinterpret_cast<float*>(workspace), nullptr, false};
  workspace += gate_bytes(args.shape);
  step.dc_carry = reinterpret_cast<float*>(workspace);
  workspace += carry_bytes(args.shape);
  step.aligned = args.shape.hidden % 4 == 0 && starts_at_16_bytes(args.weights.w_hh);
  if (args.shape.batch > 32) {
    backward_steps<64>(step);
  } else {
    backward_steps<32>(step);
  }
  gate_gradients_to_inputs_and_weights(args, step.dgates, workspace);
}

}  // namespace
}  // namespace hdetach::cuda

namespace hdetach {

const Kernel kCudaSteps = {"cuda-steps",   Device::kCuda,           cuda_unavailable,
                           cuda::unsuited, cuda::forward_workspace, cuda::backward_workspace,
                           cuda::forward,  cuda::backward};

}  // namespace hdetach
