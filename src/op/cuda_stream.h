// The stream that torch's CUDA operations run on, for kernels and timers to follow.
#pragma once

namespace hdetach {

// torch's current stream of the current device, a cudaStream_t. Null without CUDA.
void* current_stream();

}  // namespace hdetach
