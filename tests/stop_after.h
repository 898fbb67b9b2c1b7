// An observer that ends a run as a signal would.
#pragma once

#include <csignal>
#include <cstdint>

#include "train/run.h"

namespace hdetach::train {

struct StopAfter : Observer {
  explicit StopAfter(int64_t update) : update(update) {}  // 0 means never
  void updated(const Progress& progress, const Update&) override {
    if (update > 0 && progress.update >= update) signal = SIGINT;
  }
  int64_t update;
  volatile std::sig_atomic_t signal = 0;
};

}  // namespace hdetach::train
