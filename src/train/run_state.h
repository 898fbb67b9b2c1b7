// A run in memory: the model, its data, its optimiser and how far it has come. What trains it is
// trainer.h or, on a GPU, trainer_group.h; what is on disk is the business of run_folder.h.
#pragma once

#include <cstdint>

#include "models/sequence_classifier.h"
#include "tasks/sequence_set.h"
#include "train/adam.h"
#include "train/config.h"
#include "train/outcome.h"
#include "train/progress.h"

namespace hdetach::train {

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
