// What an update and an evaluation tell. Torch-free: the CPU and the CUDA trainer both speak it.
#pragma once

namespace hdetach::train {

struct Update {
  double loss, grad_norm;  // the norm is that before clipping
  bool applied;            // false when loss or norm is not finite: the weights are as before
  bool clipped = false;
};

struct Score {
  double loss = 0;      // mean over sequences and target steps
  double accuracy = 0;  // mean over sequences and scored steps
};

}  // namespace hdetach::train
