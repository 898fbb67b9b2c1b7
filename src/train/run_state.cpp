#include "train/run_state.h"

#include <algorithm>

namespace hdetach::train {

double RunState::detach() const {
  // The released code's rule, counted from 0: epoch > epochs - anneal.
  const bool annealed =
      config_.anneal_epochs > 0 && progress.epoch > config_.epochs - config_.anneal_epochs;
  return annealed ? 0.0 : config_.detach;
}

xray::Record RunState::take_xray() const {
  xray::MeasureOptions options;
  options.detach = {detach()};
  options.cell_path = config_.path == "cell";
  xray::Record record = xray::measure(probe(), options)[0];
  record.epoch = progress.epoch + 1;
  record.update = progress.update;
  return record;
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
