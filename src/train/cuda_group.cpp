#include "train/cuda_group.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "train/group_key.h"
#include "train/streams.h"

namespace hdetach::train {
namespace {

constexpr double kSecondsBetweenAnswers = 0.25;  // signals and progress must not wait for long

HostArrays arrays_of(SequenceRun& run) {
  HostArrays arrays;
  const auto& parameters = run.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    arrays.weights.push_back(parameters[i].tensor.data_ptr<float>());
    arrays.first_moments.push_back(run.adam().first_moments()[i].data_ptr<float>());
    arrays.second_moments.push_back(run.adam().second_moments()[i].data_ptr<float>());
  }
  return arrays;
}

EngineRun engine_run(SequenceRun& run) {
  const Config& config = run.config();
  EngineRun out{};
  out.train = run.task().train;
  out.sampling = run.task().sampling;
  out.minibatch_seed = stream_seed(config.seed, Stream::kMinibatches);
  out.detach_seed = run.generator_state().seed;
  out.damp = config.mode == "damp";
  out.separate = config.layer_draw == "separate";
  out.lr = config.lr;
  out.clip = config.clip;
  out.stop_on_divergence = config.on_diverge == "stop";
  return out;
}

}  // namespace

ModelShape model_shape(const Config& config, const tasks::SequenceSet& set) {
  return {set.inputs(), config.hidden, config.layers, set.classes()};
}

std::vector<const float*> weight_pointers(const SequenceClassifier& model) {
  std::vector<const float*> out;
  for (const NamedTensor& parameter : model.parameters()) {
    out.push_back(parameter.tensor.data_ptr<float>());
  }
  return out;
}

CudaGroup::CudaGroup(const std::vector<Config>& configs, const std::vector<tasks::Task>& tasks) {
  for (size_t i = 0; i < configs.size(); ++i) {
    if (group_key(configs[i]) != group_key(configs[0])) {
      throw std::runtime_error("runs that train side by side must have the same shapes, not " +
                               group_key(configs[0]) + " and " + group_key(configs[i]));
    }
    members_.push_back({std::make_unique<SequenceRun>(configs[i], tasks[i])});
  }
  evaluator_ = make_cuda_evaluator(model_shape(configs[0], *tasks[0].train));
}

// Runs that have ended must not keep the others waiting: with a quarter of the engine idle, a
// smaller one is worth its start.
bool CudaGroup::fits(const std::vector<bool>& running) const {
  int64_t wanted = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i] && members_[i].slot < 0) return false;
    wanted += running[i];
  }
  return 4 * wanted > 3 * slots_;
}

void CudaGroup::build(const std::vector<bool>& running) {
  std::vector<EngineRun> runs;
  for (size_t i = 0; i < members_.size(); ++i) fetch(i);
  engine_.reset();  // its memory goes before new memory comes
  slots_ = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i].slot = running[i] ? slots_++ : -1;
    if (running[i]) runs.push_back(engine_run(*members_[i].state));
  }
  const Config& config = members_[0].state->config();
  const tasks::SequenceSet& set = *members_[0].state->task().train;
  engine_ = make_cuda_engine({model_shape(config, set), set.steps(), set.target_steps(),
                              config.batch, config.path == "cell"},
                             std::move(runs));
  for (const Member& member : members_) {
    if (member.slot < 0) continue;
    SequenceRun& state = *member.state;
    engine_->load(member.slot, arrays_of(state),
                  {state.progress.update, state.adam().steps(), state.generator_state().drawn});
  }
  seconds_per_update_ = 0;
}

std::vector<std::vector<Update>> CudaGroup::advance(const std::vector<bool>& running,
                                                    int64_t most) {
  if (engine_ == nullptr || !fits(running)) build(running);
  // The first stretch is short: how long an update takes is not known yet.
  const double affordable =
      seconds_per_update_ > 0 ? kSecondsBetweenAnswers / seconds_per_update_ : 4.0;
  const int64_t updates = std::min(
      most, std::clamp<int64_t>(static_cast<int64_t>(affordable), 1, Engine::kMostUpdates));
  std::vector<RunOrder> orders(slots_, {false, 0.0});
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!running[i]) continue;
    orders[member.slot] = {true, member.state->detach()};
    member.on_host = false;
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::vector<Update>> done = engine_->advance(updates, orders);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  seconds_per_update_ = passed.count() / static_cast<double>(updates);
  std::vector<std::vector<Update>> out(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    if (running[i]) out[i] = std::move(done[members_[i].slot]);
  }
  return out;
}

void CudaGroup::fetch(size_t i) {
  Member& member = members_[i];
  if (member.on_host) return;
  SequenceRun& state = *member.state;
  const RunCounters counters = engine_->store(member.slot, arrays_of(state));
  state.adam().set_steps(counters.adam_steps);
  auto generator = state.generator_state();
  generator.drawn = counters.drawn;
  state.set_generator_state(generator);
  member.on_host = true;
}

std::optional<std::vector<Score>> CudaGroup::evaluate(const std::vector<size_t>& runs, Set set,
                                                      const std::function<bool(double)>& go_on) {
  std::vector<std::vector<const float*>> weights;
  std::vector<std::shared_ptr<const tasks::SequenceSet>> sets;
  for (const size_t i : runs) {
    const tasks::Task& task = members_[i].state->task();
    weights.push_back(weight_pointers(members_[i].state->model()));
    sets.push_back(set == Set::kValid ? task.valid : task.test);
  }
  return evaluator_->run(weights, sets, go_on);
}

}  // namespace hdetach::train
