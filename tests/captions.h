// Captioners small enough to reason about, on every device there is.
#pragma once

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <memory>
#include <string>
#include <vector>

#include "models/captioner.h"
#include "tests/cases.h"

namespace hdetach::test {

constexpr const char* kCaptioners[] = {"show-tell", "soft-attention"};

inline std::vector<at::Device> devices() {
  std::vector<at::Device> list{at::kCPU};
  if (cuda_present()) list.push_back(at::kCUDA);
  return list;
}

class OnEachDevice : public testing::TestWithParam<at::Device> {};

inline std::string device_test_name(const testing::TestParamInfo<at::Device>& info) {
  return info.param.is_cuda() ? "cuda" : "cpu";
}

// Initial weights are small and all captions about equally likely; `stretch` makes the model more
// decided than one that was just born.
inline std::unique_ptr<Captioner> born(const std::string& kind, const CaptionerShape& shape,
                                       const at::Device& device, uint64_t seed, double stretch) {
  std::unique_ptr<Captioner> captioner = make_captioner(kind, shape, device);
  captioner->init(seed);
  const c10::NoGradGuard no_grad;
  for (const NamedTensor& parameter : captioner->parameters()) parameter.tensor.mul_(stretch);
  return captioner;
}

inline Tensor features_of(int64_t images, const CaptionerShape& shape, const at::Device& device) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(5);
  return at::randn({images, shape.positions, shape.channels}, random, at::kFloat).to(device);
}

inline Tensor codes(const std::vector<int64_t>& values, const at::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace hdetach::test
