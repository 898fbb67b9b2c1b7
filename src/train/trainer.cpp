#include "train/trainer.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <utility>

#include "train/streams.h"

namespace hdetach::train {

Trainer::Trainer(const Config& config, tasks::Task task)
    : SequenceRun(config, std::move(task)),
      sampler_(this->task().sampling, this->task().train->size(),
               stream_seed(config.seed, Stream::kMinibatches)),
      rows_(config.batch),
      x_(at::empty({this->task().train->steps(), config.batch, this->task().train->inputs()})),
      target_(this->task().train->target_steps() * config.batch) {}

Update Trainer::step() {
  const tasks::SequenceSet& set = *task().train;
  const int64_t steps = set.steps(), target_steps = set.target_steps();
  sampler_.minibatch(progress.update, rows_);
  set.read_inputs(rows_, 0, steps, x_.data_ptr<float>());
  set.read_targets(rows_, steps - target_steps, steps, target_.data());
  model().lstm()->options.policy().detach = detach();

  Update result{};
  result.loss = model().train_pass(x_, target_.data(), target_steps);
  result.grad_norm = global_norm(model().gradients());
  result.applied = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (!result.applied) return result;
  // As clip_grad_norm_ has it, the small term included.
  const double factor = config().clip / (result.grad_norm + 1e-6);
  result.clipped = config().clip > 0 && factor < 1;
  adam().step(model().gradients(), result.clipped ? factor : 1.0);
  return result;
}

std::optional<Score> Trainer::validate(const std::function<bool(double)>& go_on) {
  return evaluate(model(), *task().valid, go_on);
}

std::optional<Score> Trainer::test(const std::function<bool(double)>& go_on) {
  return evaluate(model(), *task().test, go_on);
}

}  // namespace hdetach::train
