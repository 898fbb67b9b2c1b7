// The copying task with hdetach::LSTM: a plain LSTM and h-detach side by side on the CPU.
//
// A few symbols are shown, then a long blank stretch, then a delimiter at which they must be
// repeated in order. `./run demo` runs this program; docs/demo.md says how its defaults were
// chosen. The classes CopyingData and Run are the usage example; the rest is show.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "copying_report.h"
#include "hdetach/backend.h"
#include "hdetach/modules.h"

// OpenBLAS has threads of its own, which LibTorch does not steer; null where there is another BLAS.
extern "C" void openblas_set_num_threads(int threads) __attribute__((weak));

namespace {

using at::Tensor;

constexpr int kFailure = 1, kUsageError = 2, kSignalled = 128;
constexpr int kTokens = 10, kClasses = 9;  // 0 blank, 1..8 data, 9 delimiter (input only)
constexpr int kTrainSize = 100000, kValidSize = 500;  // sequences, drawn once for each seed
constexpr int kUpdatesPerPoint = 100;
constexpr double kLearningRate = 1e-3, kClipNorm = 1.0;

struct Options {
  int64_t delay = 30;               // steps between the last symbol and the first to be repeated
  int64_t symbols = 5;              // to be repeated; the paper has 10
  int64_t hidden = 64;              // units of the LSTM
  int64_t batch = 20;               // sequences in a minibatch
  double detach = 0.5;              // of the h-detach runs
  std::string encoding = "onehot";  // or scalar: one raw number a step
  int seeds = 3;                    // runs of each setting
  int first_seed = 1;               // the runs have seeds first_seed, first_seed + 1, ...
  int64_t updates = 0;              // of each run at most; 0 leaves the end to seconds
  double seconds = 110;             // of training at most, all runs together
  int threads = 0;                  // runs trained at the same time; 0 means one for each core
  std::string out = "runs/demo";    // folder of the report
};

struct Batch {
  Tensor x;       // [steps,B,10], or [steps,B,1] with scalar encoding
  Tensor target;  // [steps,B] int64: blanks, then the symbols in the last steps
};

class CopyingData {
 public:
  CopyingData(const Options& options, int64_t size, uint64_t seed)
      : symbols_(options.symbols),
        steps_(options.delay + 2 * options.symbols),
        onehot_(options.encoding == "onehot"),
        data_(size * options.symbols) {
    std::mt19937_64 generator(seed);
    for (uint8_t& symbol : data_) symbol = 1 + generator() % 8;
  }

  Batch rows(const std::vector<int64_t>& indices) const {
    const int64_t batch = indices.size();
    const Tensor tokens = at::zeros({steps_, batch}, at::kLong);
    const Tensor target = at::zeros({steps_, batch}, at::kLong);
    auto token_at = tokens.accessor<int64_t, 2>();
    auto target_at = target.accessor<int64_t, 2>();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < symbols_; ++i) {
        const int64_t symbol = data_[indices[b] * symbols_ + i];
        token_at[i][b] = symbol;
        target_at[steps_ - symbols_ + i][b] = symbol;
      }
      token_at[steps_ - symbols_ - 1][b] = 9;
    }
    const Tensor column = tokens.unsqueeze(-1);
    if (!onehot_) return {column.to(at::kFloat), target};
    return {at::zeros({steps_, batch, kTokens}).scatter_(-1, column, 1.0), target};
  }

  Batch draw(int64_t batch, std::mt19937_64& generator) const {  // with replacement
    std::vector<int64_t> indices(batch);
    const int64_t size = data_.size() / symbols_;
    for (int64_t& index : indices) index = generator() % size;
    return rows(indices);
  }

  Batch all() const {
    std::vector<int64_t> indices(data_.size() / symbols_);
    std::iota(indices.begin(), indices.end(), 0);
    return rows(indices);
  }

 private:
  int64_t symbols_, steps_;
  bool onehot_;
  std::vector<uint8_t> data_;  // [size, symbols], each 1..8
};

// One training run. Equal seeds give equal data, initial weights and minibatches in every setting.
class Run {
 public:
  Run(const Options& options, double detach, uint64_t seed)
      : batch_(options.batch),
        symbols_(options.symbols),
        train_(options, kTrainSize, 3 * seed),
        valid_(CopyingData(options, kValidSize, 3 * seed + 1).all()),
        minibatch_(3 * seed + 2) {
    at::manual_seed(seed);
    hdetach::GradientPolicy policy;
    policy.detach = detach;  // the only difference between the settings
    const int64_t width = options.encoding == "onehot" ? kTokens : 1;
    lstm_ = hdetach::LSTM(hdetach::LSTMOptions(width, options.hidden).policy(policy).seed(seed));
    head_ = torch::nn::Linear(options.hidden, kClasses);
    weights_ = lstm_->parameters();
    for (const Tensor& weight : head_->parameters()) weights_.push_back(weight);
    adam_ = std::make_unique<torch::optim::Adam>(weights_, kLearningRate);
  }

  // Trains to the next point of the curve. False when told to stop on the way.
  bool advance(const std::atomic<bool>& stop, Point& point) {
    double loss = 0, grad_norm = 0;
    for (int i = 0; i < kUpdatesPerPoint; ++i) {
      if (stop) return false;
      loss += update(grad_norm) / kUpdatesPerPoint;
    }
    updates_ += kUpdatesPerPoint;
    point = {updates_, loss, accuracy(), grad_norm};
    return true;
  }

  int64_t updates() const { return updates_; }

 private:
  Tensor logits(const Tensor& x) {              // [steps,B,I] -> [steps,B,9]
    const auto [h, state] = lstm_->forward(x);  // in training, draws which steps to detach
    return head_->forward(h);
  }

  double update(double& max_norm) {
    const Batch batch = train_.draw(batch_, minibatch_);
    const Tensor loss =
        at::cross_entropy_loss(logits(batch.x).flatten(0, 1), batch.target.flatten());
    adam_->zero_grad();
    loss.backward();
    // In double: the squares of an exploding run overflow float32, and a clip factor of 0 would
    // freeze it for good.
    double squares = 0;
    for (const Tensor& weight : weights_) {
      squares += std::pow(weight.grad().norm(2, at::kDouble).item<double>(), 2);
    }
    const double norm = std::sqrt(squares);
    if (norm > kClipNorm) {
      for (const Tensor& weight : weights_) weight.grad().mul_(kClipNorm / norm);
    }
    adam_->step();
    max_norm = std::max(max_norm, norm);
    return loss.item<double>();
  }

  double accuracy() {  // by symbol, over the steps that repeat them
    torch::NoGradGuard no_grad;
    lstm_->eval();
    const Tensor guess = logits(valid_.x).slice(0, -symbols_).argmax(-1);
    lstm_->train();
    return guess.eq(valid_.target.slice(0, -symbols_)).to(at::kDouble).mean().item<double>();
  }

  int64_t batch_, symbols_;
  CopyingData train_;
  Batch valid_;
  std::mt19937_64 minibatch_;
  hdetach::LSTM lstm_{nullptr};
  torch::nn::Linear head_{nullptr};
  std::vector<Tensor> weights_;
  std::unique_ptr<torch::optim::Adam> adam_;
  int64_t updates_ = 0;
};

volatile std::sig_atomic_t signal_received = 0;

void on_signal(int number) { signal_received = number; }

// Trains all runs on a few threads, one run a thread, the run that is furthest behind next.
class Trainer {
 public:
  explicit Trainer(const Options& options) : options_(options) {
    for (const double detach : {0.0, options.detach}) {
      for (int i = 0; i < options.seeds; ++i) {
        const uint64_t seed = options.first_seed + i;
        runs_.push_back(std::make_unique<Run>(options, detach, seed));
        curves_.push_back({detach, seed, {}});
      }
    }
    idle_.assign(runs_.size(), true);
    const int cores = std::max(1u, std::thread::hardware_concurrency());
    const int threads = options.threads > 0 ? options.threads : cores;
    working_ = std::min<int>(threads, runs_.size());
    for (int i = working_; i > 0; --i) threads_.emplace_back([this] { work(); });
  }

  ~Trainer() { join(); }

  // Shows the progress until the time is up, every run is finished or a signal comes. Throws what a
  // run threw.
  void watch() {
    const auto start = std::chrono::steady_clock::now();
    const bool terminal = isatty(STDOUT_FILENO);
    const double period = terminal ? 0.5 : 5;
    double shown = 0;
    const auto show = [&] {
      if (terminal && shown > 0) fmt::print("\033[{}A", curves_.size() + 2);
      shown = seconds_;
      fmt::print("{:>5.0f} s {}{}", seconds_, terminal ? "\n" : "",
                 terminal ? table(curves()) : progress_line(curves()));
      std::fflush(stdout);
    };
    while (working_ > 0 && !signal_received && seconds_ < options_.seconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (seconds_ - shown >= period) show();
    }
    join();
    show();
    if (error_) std::rethrow_exception(error_);
  }

  double seconds() const { return seconds_; }

  std::vector<Curve> curves() {
    std::lock_guard<std::mutex> lock(mutex_);
    return curves_;
  }

 private:
  // An idle run with updates to go, or the number of runs when there is none. Under the lock.
  size_t next() const {
    size_t chosen = runs_.size();
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!idle_[i] || (options_.updates > 0 && runs_[i]->updates() >= options_.updates)) continue;
      if (chosen == runs_.size() || runs_[i]->updates() < runs_[chosen]->updates()) chosen = i;
    }
    return chosen;
  }

  void work() {
    at::set_num_threads(1);
    std::unique_lock<std::mutex> lock(mutex_);
    try {
      for (size_t i; !stop_ && (i = next()) < runs_.size();) {
        idle_[i] = false;
        lock.unlock();
        Point point;
        const bool advanced = runs_[i]->advance(stop_, point);
        lock.lock();
        idle_[i] = true;
        if (advanced) curves_[i].points.push_back(point);
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      error_ = std::current_exception();
      stop_ = true;
    }
    --working_;
  }

  void join() {
    stop_ = stop_ || working_ > 0;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  Options options_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::mutex mutex_;  // guards the next three
  std::vector<Curve> curves_;
  std::vector<bool> idle_;
  std::exception_ptr error_;
  std::atomic<bool> stop_{false};
  std::atomic<int> working_{0};
  std::vector<std::thread> threads_;
  double seconds_ = 0;
};

void add_flags(CLI::App& app, Options& options) {
  const auto whole = CLI::Range(int64_t{1}, int64_t{100000});
  app.add_option("--delay", options.delay, "Steps to remember across")->check(whole);
  app.add_option("--symbols", options.symbols, "Symbols to repeat; the paper has 10")->check(whole);
  app.add_option("--hidden", options.hidden, "Units of the LSTM")->check(whole);
  app.add_option("--batch", options.batch, "Sequences in a minibatch")->check(whole);
  app.add_option("--detach", options.detach, "Detach probability of the h-detach runs")
      ->check(CLI::Range(0.001, 1.0));
  app.add_option("--encoding", options.encoding, "Input: onehot, or scalar (one raw number)")
      ->check(CLI::IsMember({"onehot", "scalar"}));
  app.add_option("--seeds", options.seeds, "Runs of each setting")->check(CLI::Range(1, 100));
  app.add_option("--first-seed", options.first_seed, "Seed of the first run of each setting")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--updates", options.updates, "End each run after so many; 0: only by time")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000000}));
  app.add_option("--seconds", options.seconds, "End after so much training")
      ->check(CLI::Range(0.1, 1e6));
  app.add_option("--threads", options.threads,
                 "Runs trained at the same time; 0: one for each core")
      ->check(CLI::Range(0, 1000));
  app.add_option("--out", options.out, "Folder of the report");
}

int demo(const Options& options) {
  std::filesystem::create_directories(options.out);
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESETHAND;  // a second Ctrl-C ends the program at once
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);

  fmt::print(
      "Copying {} symbols after a delay of {} steps, {} units, kernel {}.\n"
      "{} runs of a plain LSTM and {} of h-detach {:g}; equal seeds see equal data.\n\n",
      options.symbols, options.delay, options.hidden, hdetach::active_kernel(), options.seeds,
      options.seeds, options.detach);
  Trainer trainer(options);
  trainer.watch();

  const std::vector<Curve> curves = trainer.curves();
  int64_t updates = 0;
  for (const Curve& curve : curves) {
    if (!curve.points.empty()) updates = std::max(updates, curve.points.back().updates);
  }
  const std::string repeat = fmt::format(
      "build/copying --symbols {} --delay {} --hidden {} --batch {} --detach {:g} --encoding {} "
      "--seeds {} --first-seed {} --updates {} --seconds 1000",
      options.symbols, options.delay, options.hidden, options.batch, options.detach,
      options.encoding, options.seeds, options.first_seed, updates);
  write_report(
      options.out,
      {fmt::format("{} symbols to repeat after a delay of {} steps, {} input; {} units, "
                   "minibatches of {}, Adam 1e-3, gradient norm clipped to 1. Accuracy on "
                   "{} held-out sequences, the repeated symbols only. Gradient norms are "
                   "before clipping; a peak is the largest of {} updates. {:.0f} seconds "
                   "of training, kernel {}.",
                   options.symbols, options.delay, options.encoding, options.hidden, options.batch,
                   kValidSize, kUpdatesPerPoint, trainer.seconds(), hdetach::active_kernel()),
       "The same curves again: <code>" + repeat + "</code>"},
      curves);
  fmt::print("\n{}\n{}\n", plot(curves), summary(curves));
  fmt::print("Report: {0}/demo.html, every point: {0}/demo.jsonl\n", options.out);
  fmt::print(
      "Next:   ./run demo --first-seed 11                  seeds that the defaults were not chosen "
      "on\n"
      "        ./run demo --symbols 3 --detach 0.25        a size where h-detach is not ahead\n"
      "        docs/demo.md                                what this shows and what it does not\n");
  return signal_received ? kSignalled + signal_received : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a plain LSTM and h-detach side by side on the copying task.", "copying");
  app.option_defaults()->always_capture_default();
  add_flags(app, options);
  try {
    app.parse(argc, argv);
    return demo(options);
  } catch (const CLI::Error& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  } catch (const c10::Error& error) {
    fmt::print(stderr, "copying: error: {}\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    fmt::print(stderr, "copying: error: {}\n", error.what());
  }
  return kFailure;
}
