// Work that is recorded once and replayed.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/check.h"

namespace hdetach::train {

class Graph {
 public:
  Graph() = default;
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // `work` adds to the stream and does not wait.
  template <class Work>
  void capture(cudaStream_t stream, const Work& work) {
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                "cudaStreamBeginCapture");
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);  // the stream must not stay in capture
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    cuda::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    cuda::check(status, "cudaGraphInstantiate");
  }

  void launch(cudaStream_t stream) const {
    cuda::check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace hdetach::train
