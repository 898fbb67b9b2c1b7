#include "xray/probes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "op/random_bits.h"

namespace hdetach::xray {
namespace {

// Numbers of one stream, uniform in [-bound, bound).
class UniformDraws {
 public:
  explicit UniformDraws(uint64_t seed) : seed_(seed) {}
  at::Tensor draw(at::IntArrayRef sizes, double bound) {
    const at::Tensor out = at::empty(sizes, at::kDouble);
    double* const value = out.data_ptr<double>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      value[i] = (2 * random_uniform(seed_, n_++) - 1) * bound;
    }
    return out;
  }

 private:
  uint64_t seed_, n_ = 0;
};

// Empty where there is none of that name.
at::Tensor parameter_named(const std::vector<NamedTensor>& parameters, const std::string& name) {
  for (const NamedTensor& each : parameters) {
    if (each.name == name) return each.tensor.detach().to(at::kCPU, at::kDouble);
  }
  return {};
}

std::vector<Layer> layers_of(const std::vector<NamedTensor>& parameters,
                             const std::string& prefix) {
  std::vector<Layer> layers;
  while (true) {
    const auto of_layer = [&](const char* kind) {
      return parameter_named(parameters, prefix + kind + "_l" + std::to_string(layers.size()));
    };
    const at::Tensor w_ih = of_layer("weight_ih");
    if (!w_ih.defined()) break;
    layers.push_back({w_ih, of_layer("weight_hh"), of_layer("bias_ih") + of_layer("bias_hh")});
  }
  TORCH_CHECK(!layers.empty(), "[xray] there is no ", prefix, "weight_ih_l0 among the weights.");
  return layers;
}

std::vector<int64_t> first_places(int64_t count) {
  std::vector<int64_t> places(count);
  std::iota(places.begin(), places.end(), int64_t{0});
  return places;
}

}  // namespace

Probe random_probe(int64_t hidden, int64_t steps, double weight_scale, uint64_t seed) {
  UniformDraws draws(seed);
  const double bound = weight_scale / std::sqrt(static_cast<double>(hidden));
  Probe probe;
  Layer layer;
  layer.w_ih = draws.draw({4 * hidden, 1}, bound);
  layer.w_hh = draws.draw({4 * hidden, hidden}, bound);
  layer.bias = draws.draw({4 * hidden}, bound) + draws.draw({4 * hidden}, bound);
  probe.layers.push_back(layer);
  probe.x = draws.draw({steps, kRandomRows, 1}, std::sqrt(3.0));
  probe.dh_last = draws.draw({kRandomRows, hidden}, std::sqrt(3.0)) / kRandomRows;
  return probe;
}

Probe classifier_probe(const std::vector<NamedTensor>& parameters, const tasks::SequenceSet& set) {
  const std::vector<int64_t> rows = first_places(std::min(kProbeRows, set.size()));
  const auto batch = static_cast<int64_t>(rows.size());
  const int64_t steps = set.steps(), first = steps - set.target_steps();
  Probe probe;
  probe.layers = layers_of(parameters, "");
  const at::Tensor x = at::empty({steps, batch, set.inputs()});
  set.read_inputs(rows, 0, steps, x.data_ptr<float>());
  probe.x = x.to(at::kDouble);
  probe.head_weight = parameter_named(parameters, "head.weight");
  probe.head_bias = parameter_named(parameters, "head.bias");
  const at::Tensor target = at::empty({set.target_steps(), batch}, at::kByte);
  set.read_targets(rows, first, steps, target.data_ptr<uint8_t>());
  probe.targets = at::full({steps, batch}, -1, at::kLong);
  probe.targets.slice(0, first).copy_(target);
  return probe;
}

Probe show_tell_probe(const std::vector<NamedTensor>& parameters,
                      const tasks::ImageFeatures& features,
                      const std::vector<tasks::CaptionedImage>& images, int64_t captions) {
  const int64_t wanted = std::max<int64_t>(1, kProbeRows / captions);
  const std::vector<int64_t> places =
      first_places(std::min(wanted, static_cast<int64_t>(images.size())));
  const tasks::CaptionBatch batch = tasks::first_captions(images, places, captions);
  const auto rows = static_cast<int64_t>(batch.lengths.size());
  const auto count = static_cast<int64_t>(places.size());
  const auto named = [&](const char* name) { return parameter_named(parameters, name); };

  const at::Tensor seen = at::empty({count, features.positions(), features.channels()});
  for (int64_t i = 0; i < count; ++i) {
    features.read(images[i].row, seen[i].data_ptr<float>());
  }
  const auto whole_numbers = [](const auto& values, at::IntArrayRef sizes) {
    const at::Tensor out = at::empty(sizes, at::kLong);
    std::copy(values.begin(), values.end(), out.data_ptr<int64_t>());
    return out;
  };
  const at::Tensor inputs = whole_numbers(batch.inputs, {batch.steps * rows});
  const at::Tensor lengths = whole_numbers(batch.lengths, {rows});
  const at::Tensor image =
      at::linear(seen.to(at::kDouble).mean(1), named("image.weight"), named("image.bias"))
          .repeat_interleave(rows / count, 0);
  const at::Tensor words =
      named("embedding.weight").index_select(0, inputs).view({batch.steps, rows, -1});

  Probe probe;
  probe.layers = layers_of(parameters, "lstm.");
  probe.x = at::cat({image.unsqueeze(0), words});
  probe.lengths = lengths + 1;  // the image is a step more
  probe.head_weight = named("output.weight");
  probe.head_bias = named("output.bias");
  probe.targets = at::full({batch.steps + 1, rows}, -1, at::kLong);
  int64_t* const target = probe.targets.data_ptr<int64_t>();
  for (int64_t t = 0; t < batch.steps; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      if (t < batch.lengths[r]) target[(t + 1) * rows + r] = batch.targets[t * rows + r];
    }
  }
  return probe;
}

}  // namespace hdetach::xray
