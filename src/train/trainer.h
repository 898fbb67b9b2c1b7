// A run that trains on the CPU, update by update. The loop over epochs is in run.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "train/evaluate.h"
#include "train/sequence_run.h"

namespace hdetach::train {

class Trainer : public SequenceRun {
 public:
  Trainer(const Config& config, tasks::Task task);

  Update update() {
    const Update result = step();
    count(result);
    return result;
  }
  Update step();  // an update that is not counted yet

  std::optional<Score> validate(const std::function<bool(double)>& go_on);
  // Of the weights in the model now; the task must have a test set.
  std::optional<Score> test(const std::function<bool(double)>& go_on);

 private:
  tasks::Sampler sampler_;
  std::vector<int64_t> rows_;    // [B] of the minibatch
  at::Tensor x_;                 // [T,B,I]
  std::vector<uint8_t> target_;  // [target_steps,B]
};

}  // namespace hdetach::train
