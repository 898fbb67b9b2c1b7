#include "train/trainer_group.h"

#include <utility>

#include "train/caption_trainer.h"
#include "train/cuda_group.h"
#include "train/trainer.h"

namespace hdetach::train {
namespace {

// Runs that take turns, each with a trainer of its own.
template <class Trainer>
class TurnGroup : public TrainerGroup {
 public:
  void add(std::unique_ptr<Trainer> trainer) { trainers_.push_back(std::move(trainer)); }

  RunState& run(size_t i) override { return *trainers_[i]; }

  std::vector<std::vector<Update>> advance(const std::vector<bool>& running, int64_t) override {
    std::vector<std::vector<Update>> out(trainers_.size());
    for (size_t i = 0; i < trainers_.size(); ++i) {
      if (running[i]) out[i].push_back(trainers_[i]->step());
    }
    return out;
  }

  void fetch(size_t) override {}

  std::optional<std::vector<Score>> evaluate(const std::vector<size_t>& runs, Set set,
                                             const std::function<bool(double)>& go_on) override {
    std::vector<Score> scores;
    for (const size_t i : runs) {
      Trainer& trainer = *trainers_[i];
      const auto score = set == Set::kValid ? trainer.validate(go_on) : trainer.test(go_on);
      if (!score) return std::nullopt;
      scores.push_back(*score);
    }
    return scores;
  }

 private:
  std::vector<std::unique_ptr<Trainer>> trainers_;
};

}  // namespace

std::unique_ptr<TrainerGroup> make_group(const std::vector<Config>& configs,
                                         const std::vector<TaskData>& data) {
  if (configs.at(0).task == "caption") {
    auto group = std::make_unique<TurnGroup<CaptionTrainer>>();
    for (size_t i = 0; i < configs.size(); ++i) {
      group->add(std::make_unique<CaptionTrainer>(
          configs[i], std::get<std::shared_ptr<const tasks::CaptionData>>(data[i])));
    }
    return group;
  }
  std::vector<tasks::Task> tasks;
  for (const TaskData& each : data) tasks.push_back(std::get<tasks::Task>(each));
  if (configs.at(0).device == "cuda") return std::make_unique<CudaGroup>(configs, tasks);
  auto group = std::make_unique<TurnGroup<Trainer>>();
  for (size_t i = 0; i < configs.size(); ++i) {
    group->add(std::make_unique<Trainer>(configs[i], tasks[i]));
  }
  return group;
}

}  // namespace hdetach::train
