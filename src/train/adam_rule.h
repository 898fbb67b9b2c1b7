// The constants of Adam, for the CPU and the CUDA trainer.
#pragma once

namespace hdetach::train {

struct AdamRule {
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
};

}  // namespace hdetach::train
