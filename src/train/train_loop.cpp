#include "train/train_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <utility>

namespace hdetach::train {
namespace {

constexpr double kSecondsBetweenSaves = 60;  // within long epochs

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// One of the runs: what happens to it, apart from the updates.
class Run {
 public:
  Run(RunState& state, const LoopMember& member)
      : state_(state),
        folder_(*member.folder),
        observer_(*member.observer),
        saved_(Clock::now()),
        over_(member.left_out) {}

  bool over() const { return over_; }
  const std::optional<RunResult>& result() const { return result_; }
  Observer& observer() { return observer_; }
  Progress& progress() { return state_.progress; }

  bool reached_end() const {
    const Progress& p = state_.progress;
    return p.epoch >= config().epochs ||
           (config().stop_at > 0 && p.epochs_at_goal >= config().stop_epochs) || out_of_patience();
  }
  int64_t updates_to_validation() const {
    const Progress& p = state_.progress;
    return (p.epoch + 1) * p.epoch_updates - p.update;
  }

  void count_time(double passed) {
    progress().seconds += passed;
    progress().epoch_seconds += passed;
  }

  void take(const std::vector<Update>& updates) {
    for (const Update& update : updates) {
      state_.count(update);
      if (!update.applied && config().on_diverge == "stop") return diverged(update);
      observer_.updated(progress(), update);
    }
  }

  bool save_is_due() const { return seconds_since(saved_) > kSecondsBetweenSaves; }
  void save() {
    folder_.save_state(state_);
    saved_ = Clock::now();
  }

  bool xray_is_due() const {
    const int64_t every = config().xray_every;
    return every > 0 && (state_.progress.epoch + 1) % every == 0;
  }
  // Of the model in memory, before the epoch counts as complete.
  void take_xray() { xray_ = state_.take_xray(); }

  struct Epoch {
    EpochMetrics metrics;
    bool best;
    std::optional<xray::Record> xray;
  };
  Epoch close_epoch(const Score& score) {
    Progress& p = progress();
    const double all = static_cast<double>(p.epoch_updates);
    const double applied = all - static_cast<double>(p.skipped);
    EpochMetrics metrics;
    metrics.detach = state_.detach();  // before the epoch counts as complete
    metrics.epoch = ++p.epoch;
    metrics.update = p.update;
    metrics.train_loss = p.loss_sum / applied;  // not a number when every update was left out
    metrics.valid_loss = score.loss;
    metrics.valid_measure = score.measure;
    metrics.grad_norm_mean = p.norm_sum / applied;
    metrics.grad_norm_max = p.norm_max;
    metrics.clipped = static_cast<double>(p.clipped) / all;
    metrics.skipped = p.skipped;
    metrics.seconds = p.seconds;
    metrics.updates_per_second = all / p.epoch_seconds;
    metrics.caption_scores = score.captions;
    metrics.samples = score.samples;

    const bool best = score.measure > p.best_score;
    if (best) {
      p.best_score = score.measure;
      p.best_epoch = p.epoch;
    }
    p.epochs_at_goal = score.measure >= config().stop_at ? p.epochs_at_goal + 1 : 0;
    p.loss_sum = p.norm_sum = p.norm_max = p.epoch_seconds = 0;
    p.clipped = p.skipped = 0;
    return {metrics, best, std::exchange(xray_, std::nullopt)};
  }
  void save_epoch(const Epoch& epoch) {
    folder_.save_epoch(state_, epoch.metrics, epoch.best, epoch.xray);
    saved_ = Clock::now();
  }

  // `test` scores the best model, which is then in memory; empty when it was given up.
  template <class Test>
  bool finish(const Test& test) {
    const Config& c = config();
    RunResult ended = progress().epoch < c.epochs ? result("stopped-early", why_early())
                                                  : result("finished", "all epochs done");
    if (state_.has_test_set()) {
      load_best(state_.parameters(), folder_.path());
      const std::optional<Score> score = test();
      if (!score) return false;  // the state of the last epoch is saved
      ended.test_measure = score->measure;
      ended.test_caption_scores = score->captions;
    }
    end(std::move(ended));
    return true;
  }

 private:
  const Config& config() const { return state_.config(); }

  bool out_of_patience() const {
    const Progress& p = state_.progress;
    return config().patience > 0 && p.epoch - p.best_epoch >= config().patience;
  }

  std::string why_early() const {
    const Config& c = config();
    const auto epochs = [](int64_t n) { return fmt::format("{} epoch{}", n, n == 1 ? "" : "s"); };
    const char* const measure = c.task == "caption" ? "CIDEr" : "accuracy";
    return out_of_patience()
               ? fmt::format("no better {} for {}", measure, epochs(c.patience))
               : fmt::format("{} reached {} for {}", measure, c.stop_at, epochs(c.stop_epochs));
  }

  RunResult result(const char* status, std::string message) const {
    const Progress& p = state_.progress;
    RunResult out;
    out.status = status;
    out.epochs = p.epoch;
    out.updates = p.update;
    out.best_epoch = p.best_epoch;
    out.measure_is_cider = config().task == "caption";
    out.best_valid_measure = p.best_score;
    out.seconds = p.seconds;
    out.message = std::move(message);
    return out;
  }

  void diverged(const Update& update) {
    const bool loss = !std::isfinite(update.loss);
    const double value = std::abs(loss ? update.loss : update.grad_norm);  // some NaN have a sign
    end(result("diverged",
               fmt::format("{} is {} at update {} (epoch {}); a smaller lr, --clip or --on-diverge "
                           "continue may help",
                           loss ? "the loss" : "the gradient norm", value, progress().update,
                           progress().epoch + 1)));
  }

  void end(RunResult ended) {
    folder_.finish(ended);
    result_ = std::move(ended);
    over_ = true;
  }

  RunState& state_;
  RunFolder& folder_;
  Observer& observer_;
  Clock::time_point saved_;  // the latest save
  bool over_;
  std::optional<RunResult> result_;
  std::optional<xray::Record> xray_;  // of the epoch that is about to close
};

class Loop {
 public:
  Loop(TrainerGroup& group, const std::vector<LoopMember>& members,
       const volatile std::sig_atomic_t* signal)
      : group_(group), signal_(signal), last_(Clock::now()) {
    for (size_t i = 0; i < members.size(); ++i) runs_.emplace_back(group.run(i), members[i]);
  }

  std::vector<std::optional<RunResult>> train() {
    bool go_on = true;
    while (go_on && (go_on = finish_ended()) && !live().empty()) {
      const std::vector<size_t> due = due_for_validation();
      if (*signal_) {
        go_on = false;
      } else if (due.empty()) {
        update();
      } else {
        go_on = validate(due);
      }
    }
    if (!go_on) save_all();
    std::vector<std::optional<RunResult>> results;
    for (const Run& run : runs_) results.push_back(run.result());
    return results;
  }

 private:
  std::vector<size_t> live() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (!runs_[i].over()) out.push_back(i);
    }
    return out;
  }

  std::vector<size_t> due_for_validation() const {
    std::vector<size_t> out;
    for (const size_t i : live()) {
      if (runs_[i].updates_to_validation() <= 0) out.push_back(i);
    }
    return out;
  }

  void count_time() {
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    for (const size_t i : live()) runs_[i].count_time(passed);
    last_ = now;
  }

  void save(size_t i) {
    group_.fetch(i);
    runs_[i].save();
  }

  void save_all() {
    for (const size_t i : live()) {
      // The state of a run at its end is saved already, and its model may be the best one by now.
      if (!runs_[i].reached_end()) save(i);
    }
  }

  void update() {
    std::vector<bool> running(runs_.size());
    int64_t most = std::numeric_limits<int64_t>::max();
    for (const size_t i : live()) {
      running[i] = true;
      most = std::min(most, runs_[i].updates_to_validation());
    }
    const std::vector<std::vector<Update>> updates = group_.advance(running, most);
    count_time();
    for (const size_t i : live()) runs_[i].take(updates[i]);
    for (const size_t i : live()) {
      if (runs_[i].save_is_due()) save(i);
    }
  }

  // False when it was given up.
  bool validate(const std::vector<size_t>& due) {
    for (const size_t i : due) {
      runs_[i].observer().validating(runs_[i].progress());
      group_.fetch(i);
    }
    const auto scores =
        group_.evaluate(due, TrainerGroup::Set::kValid, [&](double) { return !*signal_; });
    for (const size_t i : due) {
      if (scores && runs_[i].xray_is_due()) runs_[i].take_xray();
    }
    count_time();
    if (!scores) return false;
    std::vector<Run::Epoch> epochs;
    for (size_t k = 0; k < due.size(); ++k)
      epochs.push_back(runs_[due[k]].close_epoch((*scores)[k]));
    // Most of a save is waiting for the disk: several runs wait at the same time.
    std::vector<std::future<void>> saves;
    for (size_t k = 1; k < due.size(); ++k) {
      saves.push_back(
          std::async(std::launch::async, [&, k] { runs_[due[k]].save_epoch(epochs[k]); }));
    }
    runs_[due[0]].save_epoch(epochs[0]);
    for (std::future<void>& each : saves) each.get();
    for (size_t k = 0; k < due.size(); ++k) {
      runs_[due[k]].observer().finished_epoch(epochs[k].metrics, epochs[k].best);
    }
    return true;
  }

  // False when a test was given up.
  bool finish_ended() {
    for (const size_t i : live()) {
      if (!runs_[i].reached_end()) continue;
      const bool finished = runs_[i].finish([&]() -> std::optional<Score> {
        const auto scores =
            group_.evaluate({i}, TrainerGroup::Set::kTest, [&](double) { return !*signal_; });
        return scores ? std::optional<Score>((*scores)[0]) : std::nullopt;
      });
      if (!finished) return false;
    }
    return true;
  }

  TrainerGroup& group_;
  const volatile std::sig_atomic_t* signal_;
  std::vector<Run> runs_;
  Clock::time_point last_;  // time counted up to
};

}  // namespace

std::vector<std::optional<RunResult>> train_loop(TrainerGroup& group,
                                                 const std::vector<LoopMember>& members,
                                                 const volatile std::sig_atomic_t* signal) {
  return Loop(group, members, signal).train();
}

}  // namespace hdetach::train
