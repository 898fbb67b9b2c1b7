#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_report.h"
#include "cli/bench_trainer.h"
#include "cli/output.h"
#include "cli/version.h"
#include "kernels/cuda/device.h"
#include "report/median.h"
#include "train/trainer_group.h"

namespace hdetach::cli {
namespace {

constexpr int64_t kBlock = 100;    // updates, timed as one
constexpr int64_t kEpoch = 1000;   // updates of an epoch
constexpr int64_t kImages = 5000;  // as many as validate a run
constexpr int kMostEpochs = 3;     // timed

// What `hdetach train` does in an epoch, but for the files.
class Runs {
 public:
  Runs(const BenchCase& shape, double detach, int replicas)
      : running_(replicas, true), all_(replicas) {
    std::vector<train::Config> configs;
    std::vector<train::TaskData> tasks;
    for (int i = 0; i < replicas; ++i) {
      train::Config config = bench_config(shape, detach);
      config.device = "cuda";
      config.seed = i + 1;
      // Images are one set for all, as a sweep has them.
      const bool share = i > 0 && config.task == "mnist";
      tasks.push_back(share ? tasks[0] : train::TaskData(bench_task(shape, config, kImages)));
      configs.push_back(config);
    }
    group_ = train::make_group(configs, tasks);
    std::iota(all_.begin(), all_.end(), 0);
  }

  double update_seconds(int64_t updates) {  // returns when the device has done them
    return seconds([&] { update(updates); });
  }

  double epoch_seconds() {
    return seconds([&] {
      update(kEpoch);
      validate();
    });
  }

  void validate() {
    for (const size_t i : all_) group_->fetch(i);
    group_->evaluate(all_, train::TrainerGroup::Set::kValid, [](double) { return true; });
  }

 private:
  template <typename Work>
  static double seconds(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void update(int64_t updates) {
    for (int64_t done = 0; done < updates;) {
      const auto stretch = group_->advance(running_, updates - done);
      for (const size_t i : all_) {
        if (stretch[i].empty() || stretch[i].size() != stretch[0].size()) {
          throw std::runtime_error("a run diverged, so there is nothing to time");
        }
        for (const train::Update& update : stretch[i]) group_->run(i).count(update);
      }
      done += static_cast<int64_t>(stretch[0].size());
    }
  }

  std::vector<bool> running_;
  std::vector<size_t> all_;
  std::unique_ptr<train::TrainerGroup> group_;
};

}  // namespace

CudaTrainerRow time_cuda_trainer(const BenchCase& shape, double detach, int replicas, int repeats) {
  Runs runs(shape, detach, replicas);
  runs.update_seconds(2 * kBlock);  // warms up, as does the validation: the data goes to the device
  runs.validate();
  std::vector<double> block_ms, epoch_seconds;
  for (int i = 0; i < repeats; ++i) {
    block_ms.push_back(1e3 * runs.update_seconds(kBlock) / kBlock);
  }
  for (int i = 0; i < std::min(repeats, kMostEpochs); ++i) {
    epoch_seconds.push_back(runs.epoch_seconds());
  }
  CudaTrainerRow row{shape,
                     detach,
                     replicas,
                     cuda_device_name(),
                     report::median(block_ms),
                     report::median(epoch_seconds),
                     0};
  row.shape.input = 1;  // one number a step, in copying as in MNIST
  row.updates_per_second = replicas * kEpoch / row.epoch_seconds;
  return row;
}

std::string trainer_json(const CudaTrainerRow& row) {
  nlohmann::ordered_json json = case_json(row.shape, "", row.detach);
  json.erase("kernel");
  json["device"] = "cuda";
  json["replicas"] = row.replicas;
  json["update_ms"] = row.update_ms;
  json["epoch_seconds"] = row.epoch_seconds;
  json["updates_per_second"] = row.updates_per_second;
  json["gpu"] = row.gpu;
  json["commit"] = commit();
  return json.dump();
}

std::string cuda_trainer_table_head() {
  return fmt::format("{:<8}  {:>6}  {:>8}  {:>10}  {:>8}  {:>9}\n", "case", "detach", "replicas",
                     "update, ms", "epoch, s", "updates/s");
}

std::string trainer_table_line(const CudaTrainerRow& row) {
  return fmt::format("{:<8}  {:>6g}  {:>8}  {:>10.3f}  {:>8.3f}  {:>9.0f}\n", row.shape.name,
                     row.detach, row.replicas, row.update_ms, row.epoch_seconds,
                     row.updates_per_second);
}

void run_cuda_trainer_bench(const BenchOptions& options, const std::vector<BenchCase>& cases) {
  if (!options.json) {
    print("{}, medians\n{}", cuda_device_name(), cuda_trainer_table_head());
  }
  for (const BenchCase& shape : cases) {
    for (const double detach : options.detach) {
      show_progress(fmt::format("{} at detach {}", shape.name, detach));
      const CudaTrainerRow row =
          time_cuda_trainer(shape, detach, options.replicas, options.repeats);
      show_progress("");
      print("{}", options.json ? trainer_json(row) + "\n" : trainer_table_line(row));
      flush_output();
    }
  }
}

}  // namespace hdetach::cli
