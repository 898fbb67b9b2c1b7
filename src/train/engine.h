// Training and evaluation on a GPU, torch-free: several runs of one shape side by side, each with
// its own weights, data order, scales and optimiser state, each with the bits that it would have
// alone. Defined in cuda/, or in no_cuda.cpp where the build has no CUDA.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/sequence_set.h"
#include "train/outcome.h"

namespace hdetach::train {

// Why nothing can run on a GPU here: "this program was built without CUDA". Empty when it can.
std::string cuda_problem();

struct ModelShape {
  int64_t inputs, hidden, layers, classes;
};

// What runs must share to train side by side.
struct EngineShape {
  ModelShape model;
  int64_t steps, target_steps, batch;
  bool steers_cell;  // the scales are on the cell path, not on the hidden one
};

// What a run does not share with those beside it.
struct EngineRun {
  std::shared_ptr<const tasks::SequenceSet> train;
  tasks::Sampling sampling;
  uint64_t minibatch_seed, detach_seed;
  bool damp, separate;  // mode damp; one draw for each layer
  double lr, clip;      // clip 0: no clipping
  bool stop_on_divergence;
};

struct RunCounters {
  int64_t update = 0, adam_steps = 0;
  uint64_t drawn = 0;  // numbers drawn for scales
};

// A run's arrays on the host, each in the order of SequenceClassifier::parameters().
struct HostArrays {
  std::vector<float*> weights, first_moments, second_moments;
};

// What a run does in the next stretch of updates.
struct RunOrder {
  bool running;   // false: nothing of it changes
  double detach;  // in force
};

class Engine {
 public:
  static constexpr int64_t kMostUpdates = 256;  // of one call of advance()

  virtual ~Engine() = default;

  virtual void load(int64_t run, const HostArrays& from, const RunCounters& counters) = 0;
  virtual RunCounters store(int64_t run, const HostArrays& to) = 0;

  // So many updates of every run that is running, and then one wait for the device. A run with
  // stop_on_divergence that meets a loss or norm that is not finite does nothing after it, so it
  // has fewer entries.
  virtual std::vector<std::vector<Update>> advance(int64_t updates,
                                                   const std::vector<RunOrder>& orders) = 0;
  virtual std::string kernel() const = 0;  // the name of the LSTM kernel at work
};

std::unique_ptr<Engine> make_cuda_engine(const EngineShape& shape, std::vector<EngineRun> runs);

// Loss and accuracy of several models, each on its own set; the sets have one size and length.
// Keeps a copy of every set it has seen on the device.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // `go_on(share)` as for evaluate(): false gives up, and the result is empty.
  virtual std::optional<std::vector<Score>> run(
      const std::vector<std::vector<const float*>>& weights,
      const std::vector<std::shared_ptr<const tasks::SequenceSet>>& sets,
      const std::function<bool(double)>& go_on) = 0;
};

std::unique_ptr<Evaluator> make_cuda_evaluator(const ModelShape& shape);

}  // namespace hdetach::train
