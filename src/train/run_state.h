// A run in memory: the model, its data, its optimiser and how far it has come. What trains it is
// trainer.h or, on a GPU, trainer_group.h; what is on disk is the business of run_folder.h.
#pragma once

#include <cstdint>

#include "models/sequence_classifier.h"
#include "tasks/sequence_set.h"
#include "train/adam.h"
#include "train/config.h"
#include "train/outcome.h"

namespace hdetach::train {

// Everything that is counted. Mirrored in the checkpoint, so that a run killed in the middle of an
// epoch reports that epoch as if it had not been.
struct Progress {
  int64_t update = 0;  // updates done, those left out included
  int64_t epoch = 0;   // epochs complete and validated
  // Over the updates of the epoch under way. Updates that were left out count in `skipped` alone.
  double loss_sum = 0, norm_sum = 0, norm_max = 0;
  int64_t clipped = 0, skipped = 0;
  // Of the validated epochs.
  int64_t best_epoch = 0;
  double best_accuracy = -1;
  int64_t epochs_at_goal = 0;  // the latest so many, in a row, reached stop-at
  double seconds = 0;          // of training and validation
  double epoch_seconds = 0;    // of the epoch under way
};

class RunState {
 public:
  RunState(const Config& config, tasks::Task task);

  double detach() const;             // in force in the epoch under way
  void count(const Update& update);  // in the progress

  Progress progress;
  SequenceClassifier& model() { return model_; }
  Adam& adam() { return adam_; }
  const Config& config() const { return config_; }
  const tasks::Task& task() const { return task_; }
  bool has_test_set() const { return task_.test != nullptr; }

 private:
  Config config_;
  tasks::Task task_;
  SequenceClassifier model_;
  Adam adam_;
};

// The model of a configuration, with its initial weights.
SequenceClassifier make_model(const Config& config, const tasks::SequenceSet& set);

}  // namespace hdetach::train
