// A parameter with the name it has in files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace hdetach {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

inline std::vector<at::Tensor> tensors(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> out;
  for (const NamedTensor& each : named) out.push_back(each.tensor);
  return out;
}

}  // namespace hdetach
