#include "cli/bench_trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "cli/bench_report.h"
#include "cli/bench_steps.h"
#include "cli/machine.h"
#include "cli/version.h"
#include "hdetach/backend.h"
#include "op/random_bits.h"
#include "report/median.h"
#include "tasks/pixels.h"
#include "train/make_task.h"
#include "train/trainer.h"

namespace hdetach::cli {
namespace {

tasks::Task noise_images(int64_t pixels, int64_t count) {
  MnistData data;
  data.rows = 1;
  data.columns = pixels;
  for (int64_t i = 0; i < count * pixels; ++i) data.images.push_back(random_bits(1, i) & 255);
  for (int64_t i = 0; i < count; ++i) data.labels.push_back(i % 10);
  std::vector<int64_t> order(pixels);
  std::iota(order.begin(), order.end(), 0);
  const auto set = std::make_shared<tasks::PixelSet>(
      std::make_shared<const MnistData>(std::move(data)), 0, count, order);
  return {set, set, set, tasks::Sampling::kShuffledPasses};
}

train::Trainer make_trainer(const BenchCase& shape, double detach) {
  train::Config config = bench_config(shape, detach);
  if (config.task == "copy") config.encoding = "onehot";
  return {config, bench_task(shape, config, 2000)};
}

}  // namespace

train::Config bench_config(const BenchCase& shape, double detach) {
  train::Config config = train::default_config(shape.name == "mnist" ? "mnist" : "copy");
  config.hidden = shape.hidden;
  config.batch = shape.batch;
  config.detach = detach;
  if (config.task == "copy") config.delay = shape.steps - 2 * config.symbols;
  return config;
}

tasks::Task bench_task(const BenchCase& shape, const train::Config& config, int64_t images) {
  return config.task == "mnist" ? noise_images(shape.steps, images) : train::make_task(config);
}

TrainerRow time_trainer(const BenchCase& shape, double detach, int threads, int repeats) {
  train::Trainer trainer = make_trainer(shape, detach);
  const std::string kernel = active_kernel();
  const auto op = kernel_step(random_problem(shape, at::kCPU), kernel,
                              detach_scales(detach, shape.steps, at::kCPU));
  const auto milliseconds = [](auto&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  };
  constexpr int kSteps = 5;  // of each in a row: a training loop runs hot
  std::vector<double> op_ms, update_ms, ratios;
  for (int repeat = -1; repeat < repeats; ++repeat) {  // the first warms up
    std::vector<double> op_now, update_now;
    for (int i = 0; i < kSteps; ++i) op_now.push_back(milliseconds([&] { op->run(); }));
    for (int i = 0; i < kSteps; ++i) update_now.push_back(milliseconds([&] { trainer.update(); }));
    if (repeat < 0) continue;
    ratios.push_back(report::median(update_now) / report::median(op_now));
    op_ms.insert(op_ms.end(), op_now.begin(), op_now.end());
    update_ms.insert(update_ms.end(), update_now.begin(), update_now.end());
  }
  return {shape,
          kernel,
          detach,
          threads,
          report::median(op_ms),
          report::median(update_ms),
          report::median(ratios)};
}

std::string trainer_json(const TrainerRow& row) {
  nlohmann::ordered_json json = case_json(row.shape, row.kernel, row.detach);
  json["device"] = "cpu";
  json["threads"] = row.threads;
  json["op_ms"] = row.op_ms;
  json["update_ms"] = row.update_ms;
  json["ratio"] = row.ratio;
  json["commit"] = commit();
  json["cpu"] = cpu_model();
  return json.dump();
}

std::string trainer_table_head() {
  return fmt::format("{:<8}  {:<11}  {:>6}  {:>9}  {:>9}  {:>6}\n", "case", "kernel", "detach",
                     "bare op", "update", "ratio");
}

std::string trainer_table_line(const TrainerRow& row) {
  return fmt::format("{:<8}  {:<11}  {:>6g}  {:>9.2f}  {:>9.2f}  {:>6.3f}\n", row.shape.name,
                     row.kernel, row.detach, row.op_ms, row.update_ms, row.ratio);
}

}  // namespace hdetach::cli
