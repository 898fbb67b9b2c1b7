// A run in memory, whatever it trains: how far it has come and what must be saved for it to go on.
// What is on disk is the business of run_folder.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hdetach/gradient_scales.h"
#include "models/named_tensor.h"
#include "train/adam.h"
#include "train/config.h"
#include "train/outcome.h"
#include "train/progress.h"
#include "xray/measure.h"

namespace hdetach::train {

class RunState {
 public:
  explicit RunState(const Config& config) : config_(config) {}
  virtual ~RunState() = default;
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  double detach() const;             // in force in the epoch under way
  void count(const Update& update);  // in the progress
  const Config& config() const { return config_; }
  Progress progress;

  // What a checkpoint holds besides the progress.
  virtual const std::vector<NamedTensor>& parameters() const = 0;
  virtual Adam& adam() = 0;
  virtual ScaleGenerator::State generator_state() = 0;
  virtual void set_generator_state(ScaleGenerator::State state) = 0;

  virtual bool has_test_set() const = 0;
  // The model on the first rows of the validation set.
  virtual xray::Probe probe() const = 0;
  // Where its gradient flows with the detach in force; the epoch is the one under way.
  xray::Record take_xray() const;
  // Files that belong to the run besides those of every run, by name; written when it begins.
  virtual std::map<std::string, std::string> files() const { return {}; }
  // Of the data from outside that it is trained on; empty when there is none.
  virtual std::string data_checksum() const = 0;

 private:
  Config config_;
};

}  // namespace hdetach::train
