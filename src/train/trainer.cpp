#include "train/trainer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

Trainer::Trainer(const Config& config, tasks::Task task)
    : config_(config),
      task_(std::move(task)),
      model_(make_model(config, *task_.train)),
      adam_(weights_of(model_), config.lr),
      sampler_(task_.sampling, task_.train->size(), stream_seed(config.seed, Stream::kMinibatches)),
      rows_(config.batch),
      x_(at::empty({task_.train->steps(), config.batch, task_.train->inputs()})),
      target_(task_.train->target_steps() * config.batch) {}

double Trainer::detach() const {
  // The released code's rule, counted from 0: epoch > epochs - anneal.
  const bool annealed =
      config_.anneal_epochs > 0 && progress.epoch > config_.epochs - config_.anneal_epochs;
  return annealed ? 0.0 : config_.detach;
}

Update Trainer::update() {
  const int64_t steps = task_.train->steps(), target_steps = task_.train->target_steps();
  sampler_.minibatch(progress.update, rows_);
  task_.train->read_inputs(rows_, 0, steps, x_.data_ptr<float>());
  task_.train->read_targets(rows_, steps - target_steps, steps, target_.data());
  model_.lstm()->options.policy().detach = detach();

  Update result;
  result.loss = model_.train_pass(x_, target_.data(), target_steps);
  result.grad_norm = global_norm(model_.gradients());
  result.applied = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  ++progress.update;
  if (!result.applied) {
    ++progress.skipped;
    return result;
  }
  // As clip_grad_norm_ has it, the small term included.
  const double factor = config_.clip / (result.grad_norm + 1e-6);
  const bool clip = config_.clip > 0 && factor < 1;
  adam_.step(model_.gradients(), clip ? factor : 1.0);
  progress.loss_sum += result.loss;
  progress.norm_sum += result.grad_norm;
  progress.norm_max = std::max(progress.norm_max, result.grad_norm);
  progress.clipped += clip;
  return result;
}

std::optional<Score> Trainer::validate(const std::function<bool(double)>& go_on) {
  return evaluate(model_, *task_.valid, go_on);
}

std::optional<Score> Trainer::test(const std::function<bool(double)>& go_on) {
  return evaluate(model_, *task_.test, go_on);
}

}  // namespace hdetach::train
