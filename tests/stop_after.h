// Runs that end as a signal would end them.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>

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

// run() in a folder, ended after so many updates; 0 means not.
inline std::optional<RunResult> run_until(int64_t stop_after, const Config& config,
                                          const std::filesystem::path& path, bool resume) {
  RunFolder folder(path);
  StopAfter observer(stop_after);
  return run(config, folder, {resume, "{}"}, observer, &observer.signal);
}

}  // namespace hdetach::train
