#include "train/sequence_run.h"

#include <utility>

#include "train/streams.h"
#include "xray/probes.h"

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

SequenceRun::SequenceRun(const Config& config, tasks::Task task)
    : RunState(config),
      task_(std::move(task)),
      model_(make_model(config, *task_.train)),
      adam_(tensors(model_.parameters()), config.lr) {
  progress.epoch_updates = config.updates_per_epoch;
}

xray::Probe SequenceRun::probe() const {
  return xray::classifier_probe(model_.parameters(), *task_.valid);
}

}  // namespace hdetach::train
