#include "op/cuda_stream.h"

#ifdef HDETACH_WITH_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

namespace hdetach {

void* current_stream() {
#ifdef HDETACH_WITH_CUDA
  return c10::cuda::getCurrentCUDAStream().stream();
#else
  return nullptr;
#endif
}

}  // namespace hdetach
