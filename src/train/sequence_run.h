// A run of the copying or MNIST task in memory: the model, its data and its optimiser. What trains
// it is trainer.h or, on a GPU, cuda_group.h.
#pragma once

#include "models/sequence_classifier.h"
#include "tasks/sequence_set.h"
#include "train/run_state.h"

namespace hdetach::train {

class SequenceRun : public RunState {
 public:
  SequenceRun(const Config& config, tasks::Task task);

  SequenceClassifier& model() { return model_; }
  const tasks::Task& task() const { return task_; }

  const std::vector<NamedTensor>& parameters() const override { return model_.parameters(); }
  Adam& adam() override { return adam_; }
  ScaleGenerator::State generator_state() override { return model_.lstm()->generator_state(); }
  void set_generator_state(ScaleGenerator::State state) override {
    model_.lstm()->set_generator_state(state);
  }
  std::string data_checksum() const override { return task_.checksum; }
  bool has_test_set() const override { return task_.test != nullptr; }
  xray::Probe probe() const override;

 private:
  tasks::Task task_;
  SequenceClassifier model_;
  Adam adam_;
};

// The model of a configuration, with its initial weights.
SequenceClassifier make_model(const Config& config, const tasks::SequenceSet& set);

}  // namespace hdetach::train
