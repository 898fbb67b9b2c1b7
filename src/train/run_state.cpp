#include "train/run_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "train/streams.h"

namespace hdetach::train {
namespace {

GradientPolicy policy_of(const Config& config) {
  GradientPolicy policy;
  policy.detach = config.detach;
  policy.path = config.path == "cell" ? Path::kCell : Path::kHidden;
  policy.mode = config.mode == "damp" ? Mode::kDamp : Mode::kDetach;
  policy.layers = config.layer_draw == "separate" ? LayerDraw::kSeparate : LayerDraw::kJoint;
  return policy;
}

std::vector<at::Tensor> weights_of(const SequenceClassifier& model) {
  std::vector<at::Tensor> weights;
  for (const NamedTensor& parameter : model.parameters()) weights.push_back(parameter.tensor);
  return weights;
}

}  // namespace

SequenceClassifier make_model(const Config& config, const tasks::SequenceSet& set) {
  SequenceClassifier model(set.inputs(), config.hidden, config.layers, set.classes(),
                           policy_of(config), stream_seed(config.seed, Stream::kDetach));
  const uint64_t seed = stream_seed(config.seed, Stream::kInitialWeights);
  if (config.init == "chrono") {
    // The longest memory the task asks for: from a symbol to its repetition, or the whole image.
    model.init_chrono(seed, config.task == "copy" ? config.delay + config.symbols : set.steps());
  } else {
    model.init_uniform(seed);
  }
  return model;
}

RunState::RunState(const Config& config, tasks::Task task)
    : config_(config),
      task_(std::move(task)),
      model_(make_model(config, *task_.train)),
      adam_(weights_of(model_), config.lr) {}

double RunState::detach() const {
  // The released code's rule, counted from 0: epoch > epochs - anneal.
  const bool annealed =
      config_.anneal_epochs > 0 && progress.epoch > config_.epochs - config_.anneal_epochs;
  return annealed ? 0.0 : config_.detach;
}

void RunState::count(const Update& update) {
  ++progress.update;
  if (!update.applied) {
    ++progress.skipped;
    return;
  }
  progress.loss_sum += update.loss;
  progress.norm_sum += update.grad_norm;
  progress.norm_max = std::max(progress.norm_max, update.grad_norm);
  progress.clipped += update.clipped;
}

}  // namespace hdetach::train
