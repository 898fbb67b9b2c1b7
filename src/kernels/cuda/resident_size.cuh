// One size of the resident kernels: how a sweep is launched with a given layout. Each size is
// compiled in a file of its own (resident_*.cu), since they take long.
#pragma once

#include "kernels/cuda/check.h"
#include "kernels/cuda/resident.h"
#include "kernels/cuda/resident_backward.cuh"
#include "kernels/cuda/resident_forward.cuh"

namespace hdetach::cuda {

// Launches `kernel` on clusters of F::L::kCluster blocks, one cluster for each group of rows.
template <class F, class Sweep>
void launch(void (*kernel)(Sweep), const Sweep& sweep) {
  using L = typename F::L;
  static_assert(sizeof(typename F::Shared) <= L::kSharedLimit, "shared memory is too small");
  const LstmShape& shape = sweep.args.shape;
  const int64_t groups = (shape.batch + kRows - 1) / kRows * shape.replicas;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             sizeof(typename F::Shared)),
        "cudaFuncSetAttribute");
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {L::kCluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(groups * L::kCluster);
  config.blockDim = dim3(L::kThreads);
  config.dynamicSmemBytes = sizeof(typename F::Shared);
  config.stream = static_cast<cudaStream_t>(sweep.args.stream);
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, sweep), "the launch of a sweep");
}

template <class L, int kInputs, bool kLengths>
void forward_with(const ForwardSweep& sweep) {
  using F = Forward<L, kInputs, kLengths>;
  launch<F>(forward_sweep<F>, sweep);
}

template <class L, int kInputs>
void forward_with(const ForwardSweep& sweep) {
  const bool lengths = sweep.args.lengths != nullptr;
  if (sweep.projected != nullptr) {
    lengths ? forward_with<L, 0, true>(sweep) : forward_with<L, 0, false>(sweep);
  } else if (sweep.args.shape.input == 1) {
    lengths ? forward_with<L, 1, true>(sweep) : forward_with<L, 1, false>(sweep);
  } else if constexpr (kInputs > 1) {
    forward_with<L, kInputs, false>(sweep);
  }
}

template <class L, bool kPlain>
void backward_with(const BackwardSweep& sweep) {
  using F = Backward<L, kPlain>;
  launch<F>(backward_sweep<F>, sweep);
}

template <class L>
void backward_with(const BackwardSweep& sweep) {
  const BackwardArgs& args = sweep.args;
  const bool plain = !args.dc && !args.c_scale.data && !args.lengths;
  plain ? backward_with<L, true>(sweep) : backward_with<L, false>(sweep);
}

template <int kKTiles, int kWarps, int kCluster>
ResidentSize resident_size() {
  using L = Layout<kKTiles, kWarps, kCluster>;
  constexpr int kInputs = kKTiles <= 8 ? 10 : 1;  // wider ones lack the registers for w_ih
  return {kKTiles * 16, kInputs, forward_with<L, kInputs>, backward_with<L>};
}

}  // namespace hdetach::cuda
