// cuda-resident: w_hh stays on the SMs for the whole sequence, one launch a direction.
//
// Strategy. Tensor cores (mma.m16n8k16, halves) with weights and operands split in two halves each,
// so that a product has float32's error; a warp needs no shuffle to get a unit's four gates, and a
// step costs one exchange by distributed shared memory. Going back, a step whose rows are all
// detached costs none. A cluster of blocks takes four batch rows; more rows, of one problem or of
// replicas, are more clusters, whose bits do not depend on each other.
// Limits. H <= 256, and those of too_large() (sizes.h).
// Measured by `hdetach bench --device cuda`; figures are in docs/kernels.md.
#include "kernels/cuda/resident.h"

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sizes.h"

namespace hdetach::cuda {
namespace {

// The narrowest that holds the units; null when none does.
const ResidentSize* find_size(const LstmShape& shape) {
  static const ResidentSize sizes[] = {resident_32(),  resident_64(),  resident_112(),
                                       resident_128(), resident_160(), resident_192(),
                                       resident_256()};
  for (const ResidentSize& size : sizes) {
    if (shape.hidden <= size.hidden) return &size;
  }
  return nullptr;
}

const char* unsuited(const LstmShape& shape) {
  return find_size(shape) ? too_large(shape) : "it holds at most 256 units";
}

size_t forward_workspace(const LstmShape& shape, int) {
  return shape.input == 1 ? 0 : gate_bytes(shape);
}

size_t backward_workspace(const LstmShape& shape, int) {
  return gate_bytes(shape) + weight_gradient_workspace(shape);
}

void forward(const ForwardArgs& args) {
  const ResidentSize& size = *find_size(args.shape);
  const int64_t inputs = args.shape.input;
  float* projected = nullptr;
  if (inputs > size.inputs || (inputs > 1 && args.lengths)) {
    projected = args.gates ? args.gates : static_cast<float*>(args.workspace);
    project_inputs(args, projected);
  }
  size.forward({args, projected});
}

void backward(const BackwardArgs& args) {
  float* const dgates = static_cast<float*>(args.workspace);
  find_size(args.shape)->backward({args, dgates});
  gate_gradients_to_inputs_and_weights(args, dgates,
                                       static_cast<char*>(args.workspace) + gate_bytes(args.shape));
}

}  // namespace

}  // namespace hdetach::cuda

namespace hdetach {

const Kernel kCudaResident = {"cuda-resident", Device::kCuda,           cuda_unavailable,
                              cuda::unsuited,  cuda::forward_workspace, cuda::backward_workspace,
                              cuda::forward,   cuda::backward};

}  // namespace hdetach
