// The whole of a run, or of several that train side by side: begin or go on, epoch after epoch,
// saving as it goes.
#pragma once

#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "train/config.h"
#include "train/metrics.h"
#include "train/outcome.h"
#include "train/progress.h"
#include "train/run_folder.h"

namespace hdetach::train {

// Told what happens; prints, or does nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void started(const Progress& /*progress*/, bool /*resumed*/) {}
  virtual void updated(const Progress& /*progress*/, const Update& /*update*/) {}
  virtual void validating(const Progress& /*progress*/) {}
  virtual void finished_epoch(const EpochMetrics& /*metrics*/, bool /*best*/) {}
};

struct RunOptions {
  bool resume = false;  // go on with the run in the folder, if there is one
  std::string session;  // JSON object for sessions.jsonl: who works on the run
};

// Trains until the run is over or `*signal` is set; then the state is saved and the result is
// empty. Throws ConfigError when the folder holds a run and resume is off, or a run of another
// configuration. A run that was over already is returned as it ended.
std::optional<RunResult> run(const Config& config, RunFolder& folder, const RunOptions& options,
                             Observer& observer, const volatile std::sig_atomic_t* signal);

// Several runs of one group_key(), each as run() would have it.
struct GroupMember {
  Config config;
  RunFolder* folder;
  RunOptions options;
  Observer* observer;
};
struct Outcome {
  std::optional<RunResult> result;
  std::exception_ptr error;  // why this run could not begin; the others are not hindered
};
std::vector<Outcome> run_group(const std::vector<GroupMember>& members,
                               const volatile std::sig_atomic_t* signal);

// Throws ConfigError when the device of the configuration is not to be had here.
void check_device(const Config& config);

}  // namespace hdetach::train
