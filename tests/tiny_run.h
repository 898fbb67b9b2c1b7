// Runs of the copying task that take a moment.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "program.h"
#include "stop_after.h"
#include "train/config.h"
#include "train/run.h"

namespace hdetach {

class TinyRun : public testing::Test {
 protected:
  TinyRun(int64_t epochs, int64_t updates_per_epoch) {
    config_ = train::default_config("copy");
    config_.delay = 6;
    config_.symbols = 2;
    config_.hidden = 16;
    config_.batch = 8;
    config_.detach = 0.5;
    config_.train_size = 200;
    config_.valid_size = 50;
    config_.epochs = epochs;
    config_.updates_per_epoch = updates_per_epoch;
  }

  std::optional<train::RunResult> run(const std::string& name, bool resume = false,
                                      int64_t stop_after = 0) {
    return train::run_until(stop_after, config_, root_ / name, resume);
  }

  TemporaryFolder root_;
  train::Config config_;
};

}  // namespace hdetach
