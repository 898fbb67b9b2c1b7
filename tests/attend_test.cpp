// Attention, step by step, against the same written plainly in float64.
#include "models/attend.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "tests/captions.h"

namespace hdetach::test {
namespace {

struct Sizes {
  int64_t embedding, positions, size, channels;
};
const Sizes kSizes[] = {{1, 1, 1, 1}, {7, 5, 9, 6}, {40, 70, 530, 2100}, {512, 49, 512, 2048}};
const std::vector<int64_t> kRowsUnderWay{6, 6, 5, 2};  // at each step

struct Inputs {
  Tensor words, query;                 // of all steps, one after the other
  Tensor features, projected, weight;  // of all rows
};

Inputs make_inputs(const Sizes& sizes) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(8);
  const auto draw = [&](at::IntArrayRef shape) { return at::randn(shape, random, at::kFloat); };
  int64_t words = 0;
  for (const int64_t rows : kRowsUnderWay) words += rows;
  const int64_t rows = kRowsUnderWay[0];
  return {draw({words, sizes.embedding}), draw({words, sizes.size}),
          draw({rows, sizes.positions, sizes.channels}), draw({rows, sizes.positions, sizes.size}),
          draw({1, sizes.size}) / std::sqrt(static_cast<double>(sizes.size))};
}

// x and the attention of all steps, then the gradients of words, query, projected and weight.
template <class Step>
Tensors run(const Inputs& inputs, at::Device device, at::ScalarType type, const Step& step) {
  const auto leaf = [&](const Tensor& t) { return t.to(device, type).requires_grad_(); };
  const Tensor words = leaf(inputs.words), query = leaf(inputs.query),
               projected = leaf(inputs.projected), weight = leaf(inputs.weight);
  Sight sight{inputs.features.to(device, type), projected,
              weight.expand({projected.size(0), weight.size(1)})};
  Tensors x, attention;
  int64_t first = 0;
  for (const int64_t rows : kRowsUnderWay) {
    const Look look = step(words.narrow(0, first, rows), query.narrow(0, first, rows), sight);
    x.push_back(look.x);
    attention.push_back(look.attention.flatten());
    first += rows;
  }
  const Tensor all = at::cat(x);
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(9);
  const Tensor dx = at::randn(all.sizes(), random, at::kFloat).to(device, type);
  Tensors out{all.detach(), at::cat(attention)};
  for (const Tensor& t : torch::autograd::grad({all}, {words, query, projected, weight}, {dx})) {
    out.push_back(t);
  }
  for (Tensor& t : out) t = t.cpu();
  return out;
}

Look plain(const Tensor& words, const Tensor& query, const Sight& sight) {
  Tensors context, attention;
  for (int64_t r = 0; r < query.size(0); ++r) {
    const Tensor match = (sight.projected[r] + query[r]).tanh();  // [positions, A]
    attention.push_back(at::softmax((match * sight.weight[r]).sum(1), 0));
    context.push_back((attention.back().unsqueeze(1) * sight.features[r]).sum(0));
  }
  return {at::cat({words, at::stack(context)}, 1), at::stack(attention).detach()};
}

class Attend : public OnEachDevice {};

TEST_P(Attend, IsThePlainOneWithItsGradients) {
  for (const Sizes& sizes : kSizes) {
    const Inputs inputs = make_inputs(sizes);
    const Tensors want = run(inputs, at::kCPU, at::kDouble, plain);
    const Tensors got = run(inputs, GetParam(), at::kFloat, attend);
    const char* const names[] = {"x", "attention", "words", "query", "projected", "weight"};
    for (size_t i = 0; i < want.size(); ++i) {
      expect_close(got[i], want[i], names[i], 2e-6);
    }
  }
}

TEST_P(Attend, GivesTheSameBitsAgain) {
  const Inputs inputs = make_inputs(kSizes[2]);
  const Tensors once = run(inputs, GetParam(), at::kFloat, attend);
  const Tensors again = run(inputs, GetParam(), at::kFloat, attend);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(once[i].equal(again[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Captioners, Attend, testing::ValuesIn(devices()), device_test_name);

}  // namespace
}  // namespace hdetach::test
