// Runs side by side on a GPU. Between two calls of advance() their weights are on the device.
#pragma once

#include <memory>
#include <vector>

#include "train/engine.h"
#include "train/sequence_run.h"
#include "train/trainer_group.h"

namespace hdetach::train {

class CudaGroup : public TrainerGroup {
 public:
  CudaGroup(const std::vector<Config>& configs, const std::vector<tasks::Task>& tasks);

  RunState& run(size_t i) override { return *members_[i].state; }
  std::vector<std::vector<Update>> advance(const std::vector<bool>& running, int64_t most) override;
  void fetch(size_t i) override;
  std::optional<std::vector<Score>> evaluate(const std::vector<size_t>& runs, Set set,
                                             const std::function<bool(double)>& go_on) override;

 private:
  struct Member {
    std::unique_ptr<SequenceRun> state;
    int64_t slot = -1;    // of the engine; -1: not in it
    bool on_host = true;  // what is in memory is up to date
  };
  void build(const std::vector<bool>& running);
  bool fits(const std::vector<bool>& running) const;

  std::vector<Member> members_;
  std::unique_ptr<Engine> engine_;
  int64_t slots_ = 0;
  double seconds_per_update_ = 0;
  std::unique_ptr<Evaluator> evaluator_;
};

ModelShape model_shape(const Config& config, const tasks::SequenceSet& set);
std::vector<const float*> weight_pointers(const SequenceClassifier& model);

}  // namespace hdetach::train
