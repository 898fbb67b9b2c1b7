// What `hdetach train` prints of a run, and what it notes in the run's folder.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "cli/live_line.h"
#include "train/config.h"
#include "train/metrics.h"
#include "train/run.h"

namespace hdetach::cli {

class TrainPrinter : public train::Observer {
 public:
  TrainPrinter(const train::Config& config, bool quiet, FILE* stream);

  void started(const train::Progress& progress, bool resumed) override;
  void updated(const train::Progress& progress, const train::Update& update) override;
  void validating(const train::Progress& progress) override;
  void finished_epoch(const train::EpochMetrics& metrics, bool best) override;
  void clear() { line_.clear(); }

 private:
  std::string text(const train::Progress& progress, const std::string& now) const;
  bool is_captions() const { return config_.task == "caption"; }

  const train::Config& config_;
  bool quiet_;
  FILE* stream_;
  LiveLine line_;
  int64_t first_update_ = 0;
  double first_seconds_ = 0;
  std::string measure_;
};

void print_result(const train::RunResult& result, const std::string& out, FILE* stream);
void print_saved(const std::string& task, const std::string& out, FILE* stream);  // how to go on

// A line of sessions.jsonl: the program and the machine.
std::string session_json(const train::Config& config, int threads);

}  // namespace hdetach::cli
