// Runs that train side by side, wherever that is: one after the other on the CPU, together on a
// GPU. The loop over epochs (run.cpp) sees only this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "train/make_task.h"
#include "train/outcome.h"
#include "train/run_state.h"

namespace hdetach::train {

class TrainerGroup {
 public:
  enum class Set { kValid, kTest };

  virtual ~TrainerGroup() = default;

  virtual RunState& run(size_t i) = 0;

  // Updates of every run that is marked, at most `most` and at least one, none of them counted in
  // the progress yet. Each run does equally many, unless it diverges with on-diverge stop.
  virtual std::vector<std::vector<Update>> advance(const std::vector<bool>& running,
                                                   int64_t most) = 0;

  // Brings the model, the moments and the generator of a run up to date in memory.
  virtual void fetch(size_t i) = 0;

  // The models in memory on their validation or test sets.
  virtual std::optional<std::vector<Score>> evaluate(const std::vector<size_t>& runs, Set set,
                                                     const std::function<bool(double)>& go_on) = 0;
};

// One run for each configuration, with its initial weights; all of one task on one device, and
// where that is a GPU, of one group_key(). States may be restored until the first advance().
std::unique_ptr<TrainerGroup> make_group(const std::vector<Config>& configs,
                                         const std::vector<TaskData>& data);

}  // namespace hdetach::train
