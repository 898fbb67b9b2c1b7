// Forward-mode differentiation: a tensor may carry a tangent beside its numbers.
#pragma once

#include <ATen/core/Tensor.h>

namespace hdetach {

constexpr int64_t kTangentLevel = 0;  // torch has no other

inline at::Tensor tangent_of(const at::Tensor& tensor) { return tensor._fw_grad(kTangentLevel); }
inline bool has_tangent(const at::Tensor& tensor) { return tangent_of(tensor).defined(); }

}  // namespace hdetach
