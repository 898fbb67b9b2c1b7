// The work of a sweep: which runs are left, and a few child processes at a time that do them.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/sweep_plan.h"
#include "report/run_record.h"
#include "train/children.h"

namespace hdetach::cli {

struct SweepJob {
  enum class Stage { kWaiting, kTraining, kEvaluating, kDone, kFailed };

  PlannedRun run;
  report::RunRecord record;  // as it was last read
  Stage stage = Stage::kWaiting;
  std::string problem = {};       // why it failed, and the end of its log
  int ended_by = 0;               // the signal after which its process was started again
  bool ended_evaluating = false;  // that process; a signal may end each of the two once

  std::filesystem::path log() const { return run.folder / "train.log"; }
  int64_t updates() const;       // done
  int64_t updates_left() const;  // at most
};

// The last lines of a file, without control characters. Empty when there is no such file.
std::vector<std::string> last_lines(const std::filesystem::path& path, size_t count);

std::string signal_name(int number);  // "signal 9 (Killed)"

class SweepJobs {
 public:
  // Reads every run that is there; a damaged one has failed. Throws std::runtime_error when one was
  // made with other settings.
  explicit SweepJobs(std::vector<PlannedRun> runs);

  const std::vector<SweepJob>& all() const { return jobs_; }
  size_t count(SweepJob::Stage stage) const;

  struct Limits {
    int at_once;   // children
    int threads;   // of each
    int replicas;  // runs of the same shapes that one child trains side by side on a GPU
  };
  // Works until nothing is left or `*signal` is set; then the children save and end first. A child
  // that another signal ended, as the system's when memory is short, is started once more. Returns
  // the signal or 0. `observe` is called often, with whether the end was asked for.
  int work(const Limits& limits, const volatile std::sig_atomic_t* signal,
           const std::function<void(bool ending)>& observe);

 private:
  void settle(SweepJob& job);  // what comes next, by what is on disk
  bool start_next(const Limits& limits);
  std::vector<size_t> beside(size_t index, int replicas) const;
  void start(const std::vector<size_t>& indices, int threads);
  train::ChildCommand evaluation(SweepJob& job) const;
  train::ChildCommand training(const std::vector<size_t>& indices);
  void end(SweepJob& job, int exit_code, bool asked);
  void store_evaluation(const SweepJob& job) const;
  void follow(SweepJob& job) const;

  std::vector<SweepJob> jobs_;
  std::string program_;  // read at the start: a build in the meantime may replace the file
  train::Children children_;
  std::vector<std::vector<size_t>> started_;  // the jobs of each child, by its key
  std::chrono::steady_clock::time_point read_;
};

}  // namespace hdetach::cli
