// The CUDA trainer: against the CPU's, and each run among others against itself alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "program.h"
#include "run_files.h"
#include "stop_after.h"
#include "train/cuda_group.h"
#include "train/engine.h"
#include "train/evaluate_on.h"
#include "train/make_task.h"
#include "train/run.h"
#include "train/trainer.h"

namespace hdetach {
namespace {

using train::Config;

class CudaTrainer : public testing::Test {
 protected:
  void SetUp() override {
    const std::string problem = train::cuda_problem();
    if (!problem.empty()) GTEST_SKIP() << "NOT TESTED, the CUDA trainer: " << problem;
  }
};

Config small_copy() {
  Config config = train::default_config("copy");
  config.delay = 12;
  config.hidden = 24;
  config.batch = 10;
  config.train_size = 500;
  config.valid_size = 100;
  config.device = "cuda";
  return config;
}

Config mnist_sample() {
  Config config = train::default_config("mnist");
  config.data = HDETACH_TEST_DATA "/mnist-sample";
  config.train_size = 100;
  config.valid_size = 50;
  config.hidden = 16;
  config.batch = 10;
  config.device = "cuda";
  return config;
}

// Trains the runs together for so many updates and counts them, as the loop does.
class Group {
 public:
  explicit Group(const std::vector<Config>& configs) : running_(configs.size(), true) {
    std::vector<train::TaskData> tasks;
    for (const Config& config : configs) tasks.push_back(train::make_task(config));
    group_ = train::make_group(configs, tasks);
  }

  // -> losses of run 0
  std::vector<double> train(int64_t updates) {
    std::vector<double> losses;
    for (int64_t done = 0; done < updates;) {
      const auto results = group_->advance(running_, updates - done);
      done += static_cast<int64_t>(results[0].size());
      for (const train::Update& update : results[0]) losses.push_back(update.loss);
      for (size_t i = 0; i < results.size(); ++i) {
        for (const train::Update& update : results[i]) group_->run(i).count(update);
      }
      if (results[0].empty()) break;
    }
    for (size_t i = 0; i < running_.size(); ++i) group_->fetch(i);
    return losses;
  }

  train::TrainerGroup& operator*() { return *group_; }
  train::RunState& run(size_t i) { return group_->run(i); }

 private:
  std::vector<bool> running_;
  std::unique_ptr<train::TrainerGroup> group_;
};

void expect_equal_bits(const at::Tensor& a, const at::Tensor& b, const std::string& name) {
  ASSERT_EQ(a.numel(), b.numel()) << name;
  EXPECT_EQ(std::memcmp(a.data_ptr<float>(), b.data_ptr<float>(), a.numel() * sizeof(float)), 0)
      << name;
}

void expect_equal_states(train::RunState& a, train::RunState& b) {
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    const NamedTensor& parameter = a.parameters()[i];
    expect_equal_bits(parameter.tensor, b.parameters()[i].tensor, parameter.name);
    expect_equal_bits(a.adam().first_moments()[i], b.adam().first_moments()[i], "m");
    expect_equal_bits(a.adam().second_moments()[i], b.adam().second_moments()[i], "v");
  }
  EXPECT_EQ(a.adam().steps(), b.adam().steps());
  EXPECT_EQ(a.progress.update, b.progress.update);
  EXPECT_EQ(a.progress.loss_sum, b.progress.loss_sum);
  EXPECT_EQ(a.progress.norm_max, b.progress.norm_max);
  EXPECT_EQ(a.generator_state().drawn, b.generator_state().drawn);
}

// The same run on the CPU. Both round at 6e-8 and add in another order; Adam's steps do not depend
// on the size of a gradient, so where one is near zero its rounding decides, and that grows.
void expect_cpu_losses(Config config, int64_t updates, double tolerance) {
  Group group({config});
  const std::vector<double> losses = group.train(updates);
  config.device = "cpu";
  train::Trainer cpu(config, train::make_task(config));
  ASSERT_EQ(static_cast<int64_t>(losses.size()), updates);
  for (int64_t i = 0; i < updates; ++i) {
    const double expected = cpu.update().loss;
    // The first loss has no update behind it.
    EXPECT_NEAR(losses[i], expected, (i == 0 ? 2e-6 : tolerance) * expected) << "update " << i;
  }
  EXPECT_NEAR(group.run(0).progress.norm_sum, cpu.progress.norm_sum,
              10 * tolerance * cpu.progress.norm_sum);
  EXPECT_EQ(group.run(0).generator_state().drawn, cpu.generator_state().drawn);
}

TEST_F(CudaTrainer, FirstLossesAreThoseOfTheCpu) {
  for (const char* encoding : {"scalar", "onehot"}) {
    for (const double clip : {1.0, 0.05, 0.0}) {
      SCOPED_TRACE(testing::Message() << encoding << ", clip " << clip);
      Config config = small_copy();
      config.encoding = encoding;
      config.clip = clip;
      config.detach = 0.5;
      expect_cpu_losses(config, 50, 1e-4);
    }
  }
}

TEST_F(CudaTrainer, FirstLossesWithEveryPolicy) {
  for (const char* path : {"hidden", "cell"}) {
    for (const char* mode : {"detach", "damp"}) {
      SCOPED_TRACE(testing::Message() << path << ", " << mode);
      Config config = small_copy();
      config.path = path;
      config.mode = mode;
      config.detach = 0.25;
      expect_cpu_losses(config, 20, 1e-4);
    }
  }
}

TEST_F(CudaTrainer, FirstLossesOfSeveralLayers) {
  for (const int64_t layers : {2, 3}) {
    for (const char* draw : {"joint", "separate"}) {
      SCOPED_TRACE(testing::Message() << layers << " layers, " << draw);
      Config config = small_copy();
      config.layers = layers;
      config.layer_draw = draw;
      config.detach = 0.5;
      expect_cpu_losses(config, 20, 1e-4);
    }
  }
}

// The sizes of the paper, and those at the edges of the head: a width that is no multiple of four,
// one above a tile, and fewer rows than a block takes.
TEST_F(CudaTrainer, FirstLossesOfOtherSizes) {
  for (const int64_t hidden : {1, 7, 100, 128, 130, 200}) {
    for (const int64_t batch : {1, 33, 100}) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", batch " << batch);
      Config config = small_copy();
      config.hidden = hidden;
      config.batch = batch;
      expect_cpu_losses(config, 5, 1e-4);
    }
  }
}

// Shuffled passes: 100 images in minibatches of 10 and of 30 begin a new order in the middle.
TEST_F(CudaTrainer, FirstLossesOfMnist) {
  for (const int64_t batch : {10, 30}) {
    Config config = mnist_sample();
    config.batch = batch;
    config.permute = true;
    config.detach = 0.25;
    expect_cpu_losses(config, 30, 1e-4);
  }
}

std::vector<Config> three_runs() {
  std::vector<Config> configs(3, small_copy());
  configs[1].seed = 2;
  configs[1].detach = 0.5;
  configs[1].lr = 5e-3;
  configs[1].train_size = 300;
  configs[2].seed = 3;
  configs[2].init = "chrono";
  configs[2].mode = "damp";
  configs[2].detach = 0.25;
  configs[2].clip = 0.1;
  return configs;
}

TEST_F(CudaTrainer, ARunAmongOthersHasTheBitsOfTheRunAlone) {
  for (const int64_t hidden : {24, 128}) {
    std::vector<Config> configs = three_runs();
    for (Config& config : configs) {
      config.hidden = hidden;
      config.batch = hidden == 128 ? 100 : 10;
    }
    Group together(configs);
    together.train(20);
    const auto go_on = [](double) { return true; };
    const auto scores =
        (*together).evaluate({0, 1, 2}, train::TrainerGroup::Set::kValid, go_on).value();
    for (size_t i = 0; i < configs.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "hidden " << hidden << ", run " << i);
      Group alone({configs[i]});
      alone.train(20);
      expect_equal_states(together.run(i), alone.run(0));
      const auto score = (*alone).evaluate({0}, train::TrainerGroup::Set::kValid, go_on).value();
      EXPECT_EQ(scores[i].loss, score[0].loss);
      EXPECT_EQ(scores[i].measure, score[0].measure);
    }
  }
}

TEST_F(CudaTrainer, MnistRunsTogetherToo) {
  std::vector<Config> configs(2, mnist_sample());
  configs[1].seed = 2;
  configs[1].detach = 0.25;
  Group together(configs);
  together.train(25);
  for (size_t i = 0; i < 2; ++i) {
    Group alone({configs[i]});
    alone.train(25);
    expect_equal_states(together.run(i), alone.run(0));
  }
}

// A run that has ended leaves the others as they would have been, in the same engine (one of five
// ended) and in a smaller one that takes its place (three of five).
TEST_F(CudaTrainer, RunsThatEndDoNotDisturbTheOthers) {
  std::vector<Config> configs(5, small_copy());
  for (size_t i = 0; i < 5; ++i) configs[i].seed = static_cast<int64_t>(i) + 1;
  std::vector<train::TaskData> tasks;
  for (const Config& config : configs) tasks.push_back(train::make_task(config));
  const auto group = train::make_group(configs, tasks);
  const int64_t last[5] = {30, 10, 20, 20, 30};
  for (int64_t update = 0; update < 30; update += 10) {
    std::vector<bool> running;
    for (const int64_t end : last) running.push_back(update < end);
    for (int64_t done = 0; done < 10;) {
      const auto results = group->advance(running, 10 - done);
      for (size_t i = 0; i < 5; ++i) {
        for (const auto& result : results[i]) group->run(i).count(result);
      }
      done += static_cast<int64_t>(results[0].size());
    }
  }
  for (size_t i = 0; i < 5; ++i) {
    SCOPED_TRACE(testing::Message() << "run " << i);
    group->fetch(i);
    Group alone({configs[i]});
    alone.train(last[i]);
    expect_equal_states(group->run(i), alone.run(0));
  }
}

TEST_F(CudaTrainer, ADivergedRunFreezesAndNoOther) {
  std::vector<Config> configs(3, small_copy());
  configs[1].seed = 2;
  configs[2].seed = 3;
  configs[2].on_diverge = "continue";
  Group group(configs);
  for (const size_t broken : {1, 2}) {
    group.run(broken).parameters().back().tensor[0] = std::numeric_limits<float>::infinity();
  }
  const auto results = (*group).advance({true, true, true}, 4);
  ASSERT_EQ(results[0].size(), 4u);
  ASSERT_EQ(results[1].size(), 1u);
  EXPECT_FALSE(results[1][0].applied);
  ASSERT_EQ(results[2].size(), 4u);
  for (const auto& update : results[2]) EXPECT_FALSE(update.applied);
  for (size_t i = 0; i < 3; ++i) (*group).fetch(i);
  EXPECT_EQ(group.run(1).adam().steps(), 0);
  EXPECT_EQ(group.run(2).adam().steps(), 0);
  Group fresh({configs[1]});  // untouched but for the bias that was broken
  expect_equal_bits(group.run(1).parameters()[1].tensor, fresh.run(0).parameters()[1].tensor,
                    "weight_hh_l0");
  Group alone({configs[0]});
  alone.train(4);
  expect_equal_bits(group.run(0).parameters()[1].tensor, alone.run(0).parameters()[1].tensor,
                    "weight_hh_l0");
}

TEST_F(CudaTrainer, EvaluationIsThatOfTheCpu) {
  // 2,100 rows are three groups; 300 units cut the steps into stretches; two layers carry state.
  for (const int64_t layers : {1, 2}) {
    Config config = small_copy();
    config.delay = 180;
    config.hidden = 300;
    config.layers = layers;
    config.valid_size = 2100;
    const tasks::Task task = train::make_task(config);
    SequenceClassifier model = train::make_model(config, *task.valid);
    const auto go_on = [](double) { return true; };
    const auto gpu = train::evaluate_on(config, model, task.valid, go_on).value();
    const auto cpu = train::evaluate(model, *task.valid, go_on).value();
    EXPECT_NEAR(gpu.loss, cpu.loss, 1e-5 * cpu.loss);  // measured nowhere yet; rounds at 6e-8
    EXPECT_NEAR(gpu.measure, cpu.measure, 1e-3);       // a tie may round either way
  }
}

TEST_F(CudaTrainer, EvaluationCanBeGivenUp) {
  const Config config = small_copy();
  const tasks::Task task = train::make_task(config);
  SequenceClassifier model = train::make_model(config, *task.valid);
  EXPECT_FALSE(
      train::evaluate_on(config, model, task.valid, [](double) { return false; }).has_value());
}

// Run folders, through the whole loop.
class CudaRun : public CudaTrainer {
 protected:
  CudaRun() {
    config_ = small_copy();
    config_.detach = 0.5;
    config_.epochs = 3;
    config_.updates_per_epoch = 7;
  }

  // Runs of seeds 1, 2, ... in folders name-1, name-2, ...
  std::vector<train::Outcome> run(const std::string& name, int64_t first, int64_t last,
                                  int64_t stop_after = 0) {
    train::StopAfter observer(stop_after);
    std::vector<std::unique_ptr<train::RunFolder>> folders;
    std::vector<train::GroupMember> members;
    for (int64_t seed = first; seed <= last; ++seed) {
      folders.push_back(
          std::make_unique<train::RunFolder>(root_ / (name + "-" + std::to_string(seed))));
      config_.seed = seed;
      members.push_back({config_, folders.back().get(), {true, "{}"}, &observer});
    }
    return train::run_group(members, &observer.signal);
  }

  TemporaryFolder root_;
  Config config_;
};

TEST_F(CudaRun, StoppedAndResumedItEndsTheSame) {
  ASSERT_TRUE(run("whole", 1, 1)[0].result.has_value());
  for (const int64_t update : {1, 5, 7, 12, 20}) {
    const std::string name = "stopped" + std::to_string(update);
    EXPECT_FALSE(run(name, 1, 1, update)[0].result.has_value()) << update;
    EXPECT_TRUE(run(name, 1, 1)[0].result.has_value());
    expect_equal_runs(root_ / "whole-1", root_ / (name + "-1"));
  }
}

TEST_F(CudaRun, RunsAtDifferentUpdatesGoOnTogether) {
  for (const int64_t seed : {1, 2, 3}) run("alone", seed, seed);
  run("together", 1, 1, 5);
  run("together", 2, 2, 12);
  for (const auto& outcome : run("together", 1, 3)) EXPECT_TRUE(outcome.result.has_value());
  for (const int64_t seed : {1, 2, 3}) {
    expect_equal_runs(root_ / ("alone-" + std::to_string(seed)),
                      root_ / ("together-" + std::to_string(seed)));
  }
}

TEST_F(CudaRun, MnistIsTestedAtItsEnd) {
  config_ = mnist_sample();
  config_.epochs = 2;
  config_.updates_per_epoch = 5;
  for (const auto& outcome : run("mnist", 1, 2)) {
    ASSERT_TRUE(outcome.result.has_value());
    EXPECT_TRUE(outcome.result->test_measure.has_value());
  }
}

}  // namespace
}  // namespace hdetach
