// Peak memory of a training step: at most what autograd of nn::LSTM holds at the same sizes, once
// the sequence outweighs the weights.
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/nn/modules/rnn.h>

#include "op/buffers.h"
#include "tests/cases.h"

namespace hdetach::test {
namespace {

// LibTorch 2 counts totals in size_t, 1.13 in int64_t.
template <typename Method>
struct TotalOf;
template <typename Total>
struct TotalOf<void (c10::MemoryReportingInfoBase::*)(void*, int64_t, Total, Total, c10::Device)> {
  using type = Total;
};
using Total = TotalOf<decltype(&c10::MemoryReportingInfoBase::reportMemoryUsage)>::type;

// Follows torch's allocator and, where asked, our own buffers, which bypass it.
class PeakMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, Total, Total, c10::Device) override {
    torch_bytes_ += bytes;
    sample();
  }
  bool memoryProfilingEnabled() const override { return true; }

  void sample() {
    const BufferUse buffers = buffer_use();
    // What was kept before counts once this step has used the pool.
    pool_touched_ = pool_touched_ || buffers.in_use > 0;
    const int64_t pool = pool_touched_ ? buffers.in_use + buffers.kept : 0;
    peak_ = std::max(peak_, torch_bytes_ + pool);
  }
  int64_t peak() const { return peak_; }

 private:
  int64_t torch_bytes_ = 0, peak_ = 0;
  bool pool_touched_ = false;
};

template <typename Step>
int64_t peak_of(const Step& step) {
  release_buffers();
  const auto meter = std::make_shared<PeakMemory>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    for (int i = 0; i < 2; ++i) step();  // the second meets what the first kept
    meter->sample();
  }
  return meter->peak();
}

class Memory : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kernels, Memory, testing::ValuesIn(testable_cpu_kernels()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(Memory, PeaksNoHigherThanTorchsLstm) {
  const ForcedKernel forced(GetParam());
  for (const Case& c : {Case{"hidden_64", 64, 32, 10, 64}, Case{"hidden_1", 64, 32, 10, 1},
                        Case{"hidden_3", 64, 32, 10, 3}, Case{"hidden_200", 20, 4, 5, 200},
                        Case{"copy_100", 120, 100, 10, 128}}) {
    SCOPED_TRACE(c.name);
    const Problem p = make_problem(c);
    torch::nn::LSTM peer(torch::nn::LSTMOptions(c.input, c.hidden));
    const auto parameters = peer->parameters();
    const int64_t theirs = peak_of([&] {
      const Tensor h = std::get<0>(peer->forward(p.args[0]));
      torch::autograd::grad({h}, parameters, {p.dh});
    });

    const Tensors weights = make_leaves(p, {false, false, false, true, true, true, true});
    const int64_t ours = peak_of([&] {
      const Tensor zeros = at::zeros({c.batch, c.hidden});
      const Tensor h = std::get<0>(
          lstm(p.args[0], zeros, zeros, weights[3], weights[4], weights[5], weights[6]));
      torch::autograd::grad({h}, {weights[3], weights[4], weights[5], weights[6]}, {p.dh});
    });
    EXPECT_EQ(last_backward().kernel, GetParam());
    ASSERT_GT(theirs, 0);
    // At the least the gates and states that any backward pass needs; else the meter is broken.
    ASSERT_GT(ours, 4 * 5 * c.steps * c.batch * c.hidden);
    // Where the sequence is smaller than the weights, or units do not fill a vector, the packed
    // copies of the weights show: at most three of them and some padding.
    const bool outweighed = c.steps * c.batch < c.input + c.hidden || c.hidden < 16;
    const int64_t weights_bytes = 4 * 4 * c.hidden * (c.input + c.hidden);
    EXPECT_LE(ours, theirs + (outweighed ? 3 * weights_bytes + (128 << 10) : 0));
  }
}

}  // namespace
}  // namespace hdetach::test
