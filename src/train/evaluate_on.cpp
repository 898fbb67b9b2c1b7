#include "train/evaluate_on.h"

#include "train/cuda_group.h"
#include "train/evaluate.h"

namespace hdetach::train {

std::optional<Score> evaluate_on(const Config& config, SequenceClassifier& model,
                                 const std::shared_ptr<const tasks::SequenceSet>& set,
                                 const std::function<bool(double)>& go_on) {
  if (config.device != "cuda") return evaluate(model, *set, go_on);
  const auto evaluator = make_cuda_evaluator(model_shape(config, *set));
  const auto scores = evaluator->run({weight_pointers(model)}, {set}, go_on);
  return scores ? std::optional<Score>((*scores)[0]) : std::nullopt;
}

}  // namespace hdetach::train
