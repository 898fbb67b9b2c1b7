#include "train/run_state.h"

#include <algorithm>

namespace hdetach::train {

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
