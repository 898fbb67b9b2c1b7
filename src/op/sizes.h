// Sizes as far as a call that is being traced knows them: torch.compile hands in tensors without
// numbers, whose sizes may be symbols. LibTorch 1.13 traces with numbers alone.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>

namespace hdetach {

#if TORCH_VERSION_MAJOR >= 2
using Size = c10::SymInt;
using Sizes = c10::SymIntArrayRef;
inline Sizes sizes_of(const at::Tensor& tensor) { return tensor.sym_sizes(); }
// Where a loop needs the number, a trace holds for this number alone.
inline int64_t number(const Size& size) { return size.guard_int(__FILE__, __LINE__); }
#else
using Size = int64_t;
using Sizes = at::IntArrayRef;
inline Sizes sizes_of(const at::Tensor& tensor) { return tensor.sizes(); }
inline int64_t number(Size size) { return size; }
#endif
inline Size size_of(const at::Tensor& tensor, int64_t dim) { return sizes_of(tensor)[dim]; }

// A tensor with a shape and no numbers: on the meta device, or one that a tracer stands in for.
inline bool is_traced(const at::Tensor& tensor) {
  return tensor.device().is_meta() || tensor.key_set().has(c10::DispatchKey::Python);
}

}  // namespace hdetach
