// What an update and an evaluation tell. Torch-free: all trainers speak it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hdetach::train {

struct Update {
  double loss, grad_norm;  // the norm is that before clipping
  bool applied;            // false when loss or norm is not finite: the weights are as before
  bool clipped = false;
};

struct SampleCaption {
  int64_t image = 0;
  std::string caption;
};

struct Score {
  double loss = 0;  // mean over sequences and target steps
  // By which the best model is chosen: accuracy, the mean over sequences and scored steps; of
  // captions CIDEr.
  double measure = 0;
  // Of captions only.
  std::map<std::string, double> captions = {};  // every score, by coco-caption's names
  std::vector<SampleCaption> samples = {};
};

}  // namespace hdetach::train
