// The means to run the list of problems: fixed inputs, a forced kernel, outputs with every
// gradient, and errors against float64. A CUDA kernel gets its inputs on the GPU; what comes out is
// compared on the CPU.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "hdetach/backend.h"
#include "hdetach/lstm.h"
#include "kernels/cuda/device.h"
#include "kernels/kernel.h"
#include "tests/case_list.h"

namespace hdetach {
#ifdef HDETACH_HAS_AMX_EMULATED
extern const Kernel kCpuAmxEmulated;
#endif
}  // namespace hdetach

namespace hdetach::test {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// The op's first seven arguments, all differentiable.
constexpr int kArgs = 7;
constexpr const char* kArgNames[kArgs] = {"x", "h0", "c0", "w_ih", "w_hh", "b_ih", "b_hh"};
using Wants = std::array<bool, kArgs>;
constexpr Wants kWantAll{true, true, true, true, true, true, true};

struct Problem {
  Tensors args;             // kArgs of them; a bias that is absent is undefined
  Tensor h_scale, c_scale;  // undefined when absent
  Tensor lengths;           // likewise
  Tensor dh, dc;            // the gradient that arrives, undefined where none does

  Problem to(at::ScalarType type) const {
    const auto as = [&](const Tensor& t) { return t.defined() ? t.to(type) : t; };
    Problem out{{}, as(h_scale), as(c_scale), lengths, as(dh), as(dc)};
    for (const Tensor& t : args) out.args.push_back(as(t));
    return out;
  }

  // Lengths stay on the CPU.
  Problem to(at::Device device) const {
    const auto on = [&](const Tensor& t) { return t.defined() ? t.to(device) : t; };
    Problem out{{}, on(h_scale), on(c_scale), lengths, on(dh), on(dc)};
    for (const Tensor& t : args) out.args.push_back(on(t));
    return out;
  }
};

inline Tensor make_scales(Scales kind, int64_t steps, int64_t batch, const at::Generator& random) {
  const auto uniform = [&](at::IntArrayRef sizes) { return at::rand(sizes, random, at::kFloat); };
  if (kind == Scales::kSteps) return uniform({steps}).ge(0.5).to(at::kFloat);
  if (kind == Scales::kDamp) return at::full({steps}, 0.7, at::kFloat);
  if (kind == Scales::kZero) return at::full({steps}, 0.0, at::kFloat);
  if (kind == Scales::kNone) return {};
  const Tensor u = uniform({steps, batch});
  return at::where(u.lt(0.3), at::zeros_like(u), at::where(u.gt(0.7), u.ceil(), u));
}

// float32 inputs that depend on the case and the seed alone. The float64 truth is made from the
// same values, so that rounding the inputs is nobody's error.
inline Problem make_problem(const Case& c, uint64_t seed = 1) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto normal = [&](at::IntArrayRef sizes) { return at::randn(sizes, random, at::kFloat); };
  const double bound = 1.0 / std::sqrt(static_cast<double>(c.hidden));  // as nn::LSTM
  const auto weight = [&](at::IntArrayRef sizes) {
    return (at::rand(sizes, random, at::kFloat) * 2 - 1) * bound;
  };
  const int64_t gates = 4 * c.hidden;
  Problem p;
  p.args = {normal({c.steps, c.batch, c.input}), normal({c.batch, c.hidden}) * 0.5,
            normal({c.batch, c.hidden}) * 0.5, weight({gates, c.input}), weight({gates, c.hidden})};
  for (int i = 0; i < 2; ++i) p.args.push_back(c.bias ? weight({gates}) : Tensor());
  p.h_scale = make_scales(c.h_scale, c.steps, c.batch, random);
  p.c_scale = make_scales(c.c_scale, c.steps, c.batch, random);
  if (c.lengths) {
    p.lengths = at::randint(1, c.steps + 1, {c.batch}, random, at::kLong);
    p.lengths[0] = c.steps;
    p.lengths[c.batch - 1] = 1;
  }
  if (c.arrives != Arrives::kC) p.dh = normal({c.steps, c.batch, c.hidden});
  if (c.arrives != Arrives::kH) p.dc = normal({c.steps, c.batch, c.hidden});
  return p;
}

inline OptionalTensor optional(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : OptionalTensor();
}

using Op = decltype(&lstm);

inline std::tuple<Tensor, Tensor> call(const Problem& p, const Tensors& args, Op op = lstm) {
  return op(args[0], args[1], args[2], args[3], args[4], optional(args[5]), optional(args[6]),
            optional(p.h_scale), optional(p.c_scale), optional(p.lengths));
}

// Copies that are leaves of a new graph; those wanted require a gradient.
inline Tensors make_leaves(const Problem& p, const Wants& wants = kWantAll) {
  Tensors leaves;
  for (int i = 0; i < kArgs; ++i) {
    const Tensor& t = p.args[i];
    leaves.push_back(t.defined() ? t.clone().requires_grad_(wants[i]) : t);
  }
  return leaves;
}

// The gradient of <h, dh> + <c, dc>, one entry an argument: undefined where none is wanted, zeros
// where autograd found no path.
inline Tensors gradients(const Problem& p, const Tensor& h, const Tensor& c, const Tensors& leaves,
                         bool retain_graph = false, bool create_graph = false) {
  Tensors outputs, arriving, inputs;
  if (p.dh.defined()) outputs.push_back(h), arriving.push_back(p.dh);
  if (p.dc.defined()) outputs.push_back(c), arriving.push_back(p.dc);
  for (const Tensor& t : leaves) {
    if (t.defined() && t.requires_grad()) inputs.push_back(t);
  }
  const Tensors found = torch::autograd::grad(outputs, inputs, arriving, retain_graph, create_graph,
                                              /*allow_unused=*/true);
  Tensors grads;
  size_t next = 0;
  for (const Tensor& t : leaves) {
    grads.emplace_back();
    if (!t.defined() || !t.requires_grad()) continue;
    const Tensor& grad = found[next++];
    grads.back() = grad.defined() ? grad : at::zeros_like(t);
  }
  return grads;
}

// On the CPU, wherever it was computed.
struct Outcome {
  Tensor h, c;
  Tensors grads;  // kArgs of them
};

inline Outcome outcome(const Tensor& h, const Tensor& c, const Tensors& grads) {
  Outcome out{h.detach().cpu(), c.detach().cpu(), {}};
  for (const Tensor& t : grads) out.grads.push_back(t.defined() ? t.cpu() : t);
  return out;
}

inline Outcome run(const Problem& p, Op op = lstm, const Wants& wants = kWantAll) {
  const Tensors leaves = make_leaves(p, wants);
  const auto [h, c] = call(p, leaves, op);
  return outcome(h, c, gradients(p, h, c, leaves));
}

// Outputs and gradients as one list with names, for comparisons. Absent ones are left out.
struct Named {
  std::string name;
  Tensor value;
};
inline std::vector<Named> named(const Outcome& outcome) {
  std::vector<Named> list{{"h", outcome.h}, {"c", outcome.c}};
  for (int i = 0; i < kArgs; ++i) {
    if (outcome.grads[i].defined()) {
      list.push_back({std::string("d") + kArgNames[i], outcome.grads[i]});
    }
  }
  return list;
}

// |got - truth| / |truth| in the Frobenius norm; where the truth is zero, |got|.
inline double relative_error(const Tensor& got, const Tensor& truth) {
  const Tensor exact = truth.cpu().to(at::kDouble);
  const double size = exact.norm().item<double>();
  const double error = (got.cpu().to(at::kDouble) - exact).norm().item<double>();
  return size == 0.0 ? error : error / size;
}

inline std::string test_name(const std::string& name) {
  std::string out = name;
  std::replace(out.begin(), out.end(), '-', '_');  // gtest's names take no hyphen
  return out;
}

// Two computations of one value that round in different orders. For sums of under 200 terms and no
// large cancellation each stays within some units of the last place: 6e-8 or 1.1e-16.
inline double tolerance(const Tensor& t) { return t.scalar_type() == at::kDouble ? 1e-13 : 2e-6; }

inline void expect_close(const Tensor& got, const Tensor& want, const std::string& what,
                         double allowed) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  // Written so that NaN fails.
  EXPECT_TRUE(relative_error(got, want) <= allowed)
      << what << " is off by " << relative_error(got, want);
}

inline void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  expect_close(got, want, what, tolerance(got));
}

inline void expect_close(const Outcome& got, const Outcome& want) {
  const auto a = named(got), b = named(want);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_close(a[i].value, b[i].value, a[i].name);
}

inline void expect_same_bits(const Outcome& got, const Outcome& want) {
  const auto a = named(got), b = named(want);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].value.equal(b[i].value)) << a[i].name << " differs";
  }
}

// Every kernel that can run here, but for the reference, which judges them.
inline std::vector<std::string> testable_kernels() {
  std::vector<std::string> names;
  for (const KernelInfo& kernel : kernels()) {
    if (!kernel.available || kernel.name == "reference") continue;
    names.push_back(kernel.name);
#ifdef HDETACH_HAS_AMX_EMULATED
    // Beside its emulated tiles it uses the same instructions.
    if (kernel.name == "cpu-avx512") {
      add_kernel(&kCpuAmxEmulated);
      names.push_back(kCpuAmxEmulated.name);
    }
#endif
  }
  return names;
}

inline bool on_cuda(const std::string& kernel) {
  const Kernel* found = find_kernel(kernel.c_str());
  return found != nullptr && found->device == Device::kCuda;
}

inline std::vector<std::string> testable_cpu_kernels() {
  std::vector<std::string> names = testable_kernels();
  names.erase(std::remove_if(names.begin(), names.end(), on_cuda), names.end());
  return names;
}

inline at::Device device_of(const std::string& kernel) {
  return on_cuda(kernel) ? at::kCUDA : at::kCPU;
}

// The cases that a kernel takes, out of those for its device.
inline std::vector<Case> cases_for(const std::string& kernel) {
  std::vector<Case> list = cases();
  if (on_cuda(kernel)) list.insert(list.end(), cuda_cases().begin(), cuda_cases().end());
  const auto unsuited = [&](const Case& c) {
    return find_kernel(kernel.c_str())->unsuited({c.steps, c.batch, c.input, c.hidden}) != nullptr;
  };
  list.erase(std::remove_if(list.begin(), list.end(), unsuited), list.end());
  return list;
}

// make_problem() where the kernel wants it.
inline Problem problem_for(const std::string& kernel, const Case& c, uint64_t seed = 1) {
  return make_problem(c, seed).to(device_of(kernel));
}

// Forces a kernel for the life of the object.
class ForcedKernel {
 public:
  explicit ForcedKernel(const std::string& name) {
    if (const char* before = std::getenv(kVariable)) before_ = before;
    setenv(kVariable, name.c_str(), /*overwrite=*/1);
  }
  ~ForcedKernel() {
    if (before_.empty()) {
      unsetenv(kVariable);
    } else {
      setenv(kVariable, before_.c_str(), 1);
    }
  }
  ForcedKernel(const ForcedKernel&) = delete;
  ForcedKernel& operator=(const ForcedKernel&) = delete;

 private:
  static constexpr const char* kVariable = "HDETACH_KERNEL";
  std::string before_;
};

// Sets torch's thread count for the life of the object.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Every kernel in float32, and the op in float64, which is the reference, on every device.
struct Path {
  std::string kernel;
  at::ScalarType type;
  at::Device device;

  std::string name() const {
    const bool extra = kernel == "reference" && device.is_cuda();
    return test_name(kernel) + (extra ? "_cuda" : "");
  }
};

inline std::ostream& operator<<(std::ostream& out, const Path& path) { return out << path.name(); }

inline std::vector<Path> paths() {
  std::vector<Path> list{{"reference", at::kDouble, at::kCPU}};
  if (cuda_present()) list.push_back({"reference", at::kDouble, at::kCUDA});
  for (const std::string& kernel : testable_kernels()) {
    list.push_back({kernel, at::kFloat, device_of(kernel)});
  }
  return list;
}

// A test that forces one path and at its end asserts that this one ran.
class OnEachPath : public testing::TestWithParam<Path> {
 protected:
  Problem problem(const Case& c) const {
    return make_problem(c).to(GetParam().type).to(GetParam().device);
  }
  void TearDown() override { EXPECT_EQ(last_forward().kernel, GetParam().kernel); }

 private:
  ForcedKernel forced_{GetParam().kernel};
};

}  // namespace hdetach::test
