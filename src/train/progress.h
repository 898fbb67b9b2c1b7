// How far a run has come. Torch-free, as is all that the program tells of a run.
#pragma once

#include <cstdint>

namespace hdetach::train {

// Everything that is counted. Mirrored in the checkpoint, so that a run killed in the middle of an
// epoch reports that epoch as if it had not been.
struct Progress {
  int64_t epoch_updates = 0;  // updates of an epoch; a constant of the run, not saved

  int64_t update = 0;  // updates done, those left out included
  int64_t epoch = 0;   // epochs complete and validated
  // Over the updates of the epoch under way. Updates that were left out count in `skipped` alone.
  double loss_sum = 0, norm_sum = 0, norm_max = 0;
  int64_t clipped = 0, skipped = 0;
  // Of the validated epochs.
  int64_t best_epoch = 0;
  double best_score = -1;
  int64_t epochs_at_goal = 0;  // the latest so many, in a row, reached stop-at
  double seconds = 0;          // of training and validation
  double epoch_seconds = 0;    // of the epoch under way
};

}  // namespace hdetach::train
