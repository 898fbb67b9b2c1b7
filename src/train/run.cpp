#include "train/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "train/make_task.h"

namespace hdetach::train {
namespace {

constexpr double kSecondsBetweenSaves = 60;  // within long epochs

// More epochs are the same run, only longer, unless annealing counts from the end.
bool longer(const Config& config, const Config& before) {
  return config.anneal_epochs == 0 && config.epochs > before.epochs;
}

void check_same(const Config& config, Config before, const std::string& folder) {
  if (longer(config, before)) before.epochs = config.epochs;
  const std::string found = differences(config, before);
  if (found.empty()) return;
  throw ConfigError(
      fmt::format("out is {}, which holds a run of other settings: {}; give the same settings, or "
                  "another folder",
                  folder, found));
}

class Run {
 public:
  Run(const Config& config, RunFolder& folder, Observer& observer,
      const volatile std::sig_atomic_t* signal)
      : config_(config),
        folder_(folder),
        observer_(observer),
        signal_(signal),
        trainer_(config, make_task(config)) {}

  std::optional<RunResult> train() {
    const bool resumed = folder_.restore(trainer_);
    last_ = saved_ = Clock::now();
    observer_.started(progress(), resumed);
    while (progress().epoch < config_.epochs && !reached_goal()) {
      while (progress().update < (progress().epoch + 1) * config_.updates_per_epoch) {
        if (*signal_) return interrupted();
        const Update update = trainer_.update();
        count_time();
        if (!update.applied && config_.on_diverge == "stop") return diverged(update);
        observer_.updated(progress(), update);
        if (seconds_since(saved_) > kSecondsBetweenSaves) save();
      }
      observer_.validating(progress());
      const auto score = trainer_.validate([&](double) { return !*signal_; });
      count_time();
      if (!score) return interrupted();
      finish_epoch(*score);
    }
    return finished();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Progress& progress() { return trainer_.progress; }

  static double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }

  void count_time() {
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    progress().seconds += passed;
    progress().epoch_seconds += passed;
    last_ = now;
  }

  void save() {
    folder_.save_state(trainer_);
    saved_ = Clock::now();
  }

  std::optional<RunResult> interrupted() {
    save();
    return std::nullopt;
  }

  bool reached_goal() {
    return config_.stop_at > 0 && progress().epochs_at_goal >= config_.stop_epochs;
  }

  void finish_epoch(const Score& score) {
    Progress& p = progress();
    const double all = static_cast<double>(config_.updates_per_epoch);
    const double applied = all - static_cast<double>(p.skipped);
    EpochMetrics metrics;
    metrics.detach = trainer_.detach();  // before the epoch counts as complete
    metrics.epoch = ++p.epoch;
    metrics.update = p.update;
    metrics.train_loss = p.loss_sum / applied;  // not a number when every update was left out
    metrics.valid_loss = score.loss;
    metrics.valid_accuracy = score.accuracy;
    metrics.grad_norm_mean = p.norm_sum / applied;
    metrics.grad_norm_max = p.norm_max;
    metrics.clipped = static_cast<double>(p.clipped) / all;
    metrics.skipped = p.skipped;
    metrics.seconds = p.seconds;
    metrics.updates_per_second = all / p.epoch_seconds;

    const bool best = score.accuracy > p.best_accuracy;
    if (best) {
      p.best_accuracy = score.accuracy;
      p.best_epoch = p.epoch;
    }
    p.epochs_at_goal = score.accuracy >= config_.stop_at ? p.epochs_at_goal + 1 : 0;
    p.loss_sum = p.norm_sum = p.norm_max = p.epoch_seconds = 0;
    p.clipped = p.skipped = 0;
    folder_.save_epoch(trainer_, metrics, best);
    saved_ = Clock::now();
    observer_.finished_epoch(metrics, best);
  }

  RunResult result(const char* status, std::string message) {
    const Progress& p = progress();
    RunResult over;
    over.status = status;
    over.epochs = p.epoch;
    over.updates = p.update;
    over.best_epoch = p.best_epoch;
    over.best_valid_accuracy = p.best_accuracy;
    over.seconds = p.seconds;
    over.message = std::move(message);
    return over;
  }

  std::optional<RunResult> finished() {
    RunResult over = progress().epoch < config_.epochs
                         ? result("stopped-early", fmt::format("accuracy reached {} for {} epoch{}",
                                                               config_.stop_at, config_.stop_epochs,
                                                               config_.stop_epochs == 1 ? "" : "s"))
                         : result("finished", "all epochs done");
    if (trainer_.has_test_set()) {
      load_best(trainer_.model(), folder_.path());
      const auto score = trainer_.test([&](double) { return !*signal_; });
      if (!score) return std::nullopt;  // the state of the last epoch is saved
      over.test_accuracy = score->accuracy;
    }
    folder_.finish(over);
    return over;
  }

  std::optional<RunResult> diverged(const Update& update) {
    const bool loss = !std::isfinite(update.loss);
    RunResult over = result(
        "diverged",
        fmt::format("{} is {} at update {} (epoch {}); a smaller lr, --clip or --on-diverge "
                    "continue may help",
                    loss ? "the loss" : "the gradient norm", loss ? update.loss : update.grad_norm,
                    progress().update, progress().epoch + 1));
    folder_.finish(over);
    return over;
  }

  Config config_;
  RunFolder& folder_;
  Observer& observer_;
  const volatile std::sig_atomic_t* signal_;
  Trainer trainer_;
  Clock::time_point last_, saved_;  // time counted up to, and the latest save
};

}  // namespace

std::optional<RunResult> run(const Config& config, RunFolder& folder, const RunOptions& options,
                             Observer& observer, const volatile std::sig_atomic_t* signal) {
  const auto before = read_config(folder.path());
  if (before && !options.resume) {
    throw ConfigError(
        fmt::format("out is {}, which holds a run already; --resume goes on with it, "
                    "another folder starts anew",
                    folder.path().string()));
  }
  if (before) {
    check_same(config, *before, folder.path().string());
    const auto result = folder.result();
    if (result && (!longer(config, *before) || result->status == "diverged")) return result;
  }
  Run run(config, folder, observer, signal);  // first: bad data must not leave a run behind
  if (!before || longer(config, *before)) folder.begin(config);
  folder.add_session(options.session);
  return run.train();
}

}  // namespace hdetach::train
