#include "train/trainer_group.h"

#include <utility>

#include "train/cuda_group.h"
#include "train/trainer.h"

namespace hdetach::train {
namespace {

class CpuGroup : public TrainerGroup {
 public:
  CpuGroup(const std::vector<Config>& configs, const std::vector<tasks::Task>& tasks) {
    for (size_t i = 0; i < configs.size(); ++i) {
      trainers_.push_back(std::make_unique<Trainer>(configs[i], tasks[i]));
    }
  }

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
                                         const std::vector<tasks::Task>& tasks) {
  if (configs.at(0).device == "cuda") return std::make_unique<CudaGroup>(configs, tasks);
  return std::make_unique<CpuGroup>(configs, tasks);
}

}  // namespace hdetach::train
