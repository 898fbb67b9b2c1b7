// The copying task with hdetach::LSTM: a plain LSTM and h-detach side by side on the CPU.
//
// Ten symbols are shown, then a long blank stretch, then a delimiter at which all ten must be
// repeated. `./run demo` runs this program; docs/demo.md says how its defaults were chosen.
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
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hdetach/modules.h"

// OpenBLAS has its own threads, which LibTorch does not steer; null where another BLAS is used.
extern "C" void openblas_set_num_threads(int threads) __attribute__((weak));

namespace {

using at::Tensor;

constexpr int kClasses = 9;            // a blank and eight data symbols
constexpr int kTrainSize = 100000, kValidSize = 500;  // sequences, drawn once for each seed
constexpr int kUpdatesPerPoint = 100;
constexpr double kSolved = 0.99;

struct Options {
  int64_t delay = 20;     // T of the paper: a sequence has T + 20 steps
  int64_t symbols = 10;
  int64_t hidden = 64;    // units of the LSTM
  int64_t batch = 50;     // sequences in a minibatch
  double detach = 0.25;   // of the h-detach runs; the plain ones have 0
  double rate = 1e-3;     // Adam's learning rate
  double clip = 1.0;      // global norm of the gradient
  int seeds = 3;          // runs of each setting
  int64_t updates = 0;    // of each run; 0 leaves the end to seconds
  double seconds = 110;   // of training, all runs together
  int threads = 0;        // runs trained at the same time; 0 means one for each core
  bool onehot = false;    // input [.,.,10] instead of one raw number, the paper's released code
  std::string out = "runs/demo";
};

struct Batch {
  Tensor x;       // [T+20,B,1], or [T+20,B,10] with onehot
  Tensor target;  // [T+20,B] int64: blanks, then the symbols in the last ten steps
};

class CopyingData {
 public:
  CopyingData(const Options& options, int size, uint64_t seed)
      : options_(options), size_(size), symbols_(size * options_.symbols) {
    std::mt19937_64 draw(seed);
    for (uint8_t& symbol : symbols_) symbol = 1 + draw() % 8;
  }

  Batch rows(const std::vector<int64_t>& indices) const {
    const int64_t batch = indices.size(), steps = options_.delay + 2 * options_.symbols;
    const int64_t width = options_.onehot ? 10 : 1;
    const Tensor x = at::zeros({steps, batch, width});
    const Tensor target = at::zeros({steps, batch}, at::kLong);
    auto x_at = x.accessor<float, 3>();
    auto target_at = target.accessor<int64_t, 2>();
    const auto put = [&](int64_t t, int64_t b, int token) {
      if (options_.onehot) x_at[t][b][0] = 0;
      x_at[t][b][options_.onehot ? token : 0] = options_.onehot ? 1 : token;
    };
    if (options_.onehot) x.select(2, 0).fill_(1);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < options_.symbols; ++i) {
        const int symbol = symbols_[indices[b] * options_.symbols + i];
        put(i, b, symbol);
        target_at[steps - options_.symbols + i][b] = symbol;
      }
      put(steps - options_.symbols - 1, b, 9);  // the delimiter
    }
    return {x, target};
  }

  Batch draw(std::mt19937_64& generator) const {  // with replacement
    std::vector<int64_t> indices(options_.batch);
    for (int64_t& index : indices) index = generator() % size_;
    return rows(indices);
  }

  Batch all() const {
    std::vector<int64_t> indices(size_);
    for (int i = 0; i < size_; ++i) indices[i] = i;
    return rows(indices);
  }

 private:
  Options options_;
  int size_;
  std::vector<uint8_t> symbols_;  // [size, 10], each 1..8
};

struct Point {
  int64_t updates;
  double loss, accuracy, grad_norm;  // mean training loss, validation, largest before clipping
};

hdetach::LSTMOptions lstm_options(const Options& options, double detach, uint64_t seed) {
  hdetach::GradientPolicy policy;
  policy.detach = detach;
  return hdetach::LSTMOptions(options.onehot ? 10 : 1, options.hidden).policy(policy).seed(seed);
}

// One training run. Equal seeds mean equal data, initial weights and minibatches in every setting.
class Run {
 public:
  Run(const Options& options, double detach, uint64_t seed)
      : detach(detach),
        seed(seed),
        options_(options),
        clip_(options.clip),
        train_(options, kTrainSize, 3 * seed),
        valid_(CopyingData(options, kValidSize, 3 * seed + 1).all()),
        minibatch_(3 * seed + 2),
        lstm_((at::manual_seed(seed), lstm_options(options, detach, seed))),
        head_(options.hidden, kClasses) {
    weights_ = lstm_->parameters();
    for (const Tensor& weight : head_->parameters()) weights_.push_back(weight);
    adam_ = std::make_unique<torch::optim::Adam>(weights_, options.rate);
  }

  // The next point of the curve, or false when told to stop on the way.
  bool advance(const std::atomic<bool>& stop, Point& point) {
    double loss = 0, grad_norm = 0;
    for (int i = 0; i < kUpdatesPerPoint; ++i) {
      if (stop) return false;
      loss += update(grad_norm) / kUpdatesPerPoint;
    }
    point = {(updates_ += kUpdatesPerPoint), loss, accuracy(), grad_norm};
    return true;
  }

  const double detach;
  const uint64_t seed;
  std::vector<Point> curve;  // the caller's, under its lock
  bool busy = false;         // likewise

 private:
  Tensor logits(const Tensor& x) {
    const auto [h, state] = lstm_->forward(x);  // the scales of this pass are drawn inside
    return head_->forward(h);
  }

  double update(double& max_norm) {
    const Batch batch = train_.draw(minibatch_);
    const Tensor loss = at::cross_entropy_loss(logits(batch.x).flatten(0, 1),
                                               batch.target.flatten());
    adam_->zero_grad();
    loss.backward();
    // In double: the squares of an exploding plain run overflow float32, and a clip factor of 0
    // would freeze it for good.
    double squares = 0;
    for (const Tensor& weight : weights_) {
      squares += std::pow(weight.grad().norm(2, at::kDouble).item<double>(), 2);
    }
    const double norm = std::sqrt(squares);
    max_norm = std::max(max_norm, norm);
    if (norm > clip_) {
      for (const Tensor& weight : weights_) weight.grad().mul_(clip_ / norm);
    }
    adam_->step();
    return loss.item<double>();
  }

  double accuracy() {  // of the last ten steps, by symbol
    torch::NoGradGuard no_grad;
    lstm_->eval();
    const Tensor guess = logits(valid_.x).slice(0, -options_.symbols).argmax(-1);
    lstm_->train();
    return guess.eq(valid_.target.slice(0, -options_.symbols)).to(at::kDouble).mean().item<double>();
  }

  Options options_;
  double clip_;
  CopyingData train_;
  Batch valid_;
  std::mt19937_64 minibatch_;
  hdetach::LSTM lstm_;
  torch::nn::Linear head_;
  std::vector<Tensor> weights_;
  std::unique_ptr<torch::optim::Adam> adam_;
  int64_t updates_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<double> detaches{0.0};
  CLI::App app("x", "copying");
  app.add_option("--delay", options.delay);
  app.add_option("--hidden", options.hidden);
  app.add_option("--batch", options.batch);
  app.add_option("--symbols", options.symbols);
  app.add_option("--rate", options.rate);
  app.add_option("--detach", detaches)->delimiter(',');
  app.add_option("--seeds", options.seeds);
  app.add_option("--updates", options.updates);
  app.add_flag("--onehot", options.onehot);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  if (openblas_set_num_threads) openblas_set_num_threads(1);
  std::atomic<bool> stop{false};
  for (int s = 1; s <= options.seeds; ++s)
    for (double d : detaches) {
      Run run(options, d, s);
      auto t0 = std::chrono::steady_clock::now();
      Point p; int64_t solved = -1; std::string line; double best = 0, gmax = 0, recent=0;
      for (int64_t u = 0; u < options.updates; u += kUpdatesPerPoint) {
        run.advance(stop, p);
        best = std::max(best, p.accuracy); gmax = std::max(gmax, p.grad_norm);
        if (solved < 0 && p.accuracy >= kSolved) solved = p.updates;
        if (p.updates % (options.updates / 10) == 0) line += fmt::format(" {:.0f}", 100 * p.accuracy);
        if (solved > 0 && p.updates > solved + 1000 && recent++ > 5) break;
      }
      double sec = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
      fmt::print("S={} D={} H={} B={} lr={} {} detach={} seed={}: to99={} best={:.1f} gmax={:.2g} {:.0f} up/s |{}\n", options.symbols, options.delay,
                 options.hidden, options.batch, options.rate, options.onehot ? "onehot" : "scalar", d, s, solved, 100 * best, gmax, p.updates / sec, line);
      fflush(stdout);
    }
}
