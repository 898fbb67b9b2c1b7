// The stream that torch's CUDA operations run on, for kernels and timers to follow.
#pragma once

namespace hdetach {

// torch's current stream of the current device, a cudaStream_t. For tensors on a GPU alone: it
// starts CUDA, and throws where that has no device.
void* current_stream();

// Whether what is queued on it now becomes part of a CUDA graph. For tensors on a GPU alone.
bool current_stream_is_captured();

}  // namespace hdetach
