// Sweeps of runs that take a moment.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/program.h"

namespace hdetach {

class TinySweep : public testing::Test {
 protected:
  // Two settings and two seeds; `top` and `base` are added to the file.
  std::string file(const std::string& top, const std::string& base = "",
                   const std::string& name = "tiny.toml") const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "task = \"copy\"\nseeds = [1, 2]\n"
                        << top << "\n[base]\nsymbols = 2\n"
                        << "delay = 4\nhidden = 4\nbatch = 2\ntrain-size = 20\nvalid-size = 10\n"
                        << "updates-per-epoch = 3\n"
                        << base << "\n[[setting]]\nname = \"plain\"\n"
                        << "[[setting]]\nname = \"detach-0.5\"\ndetach = 0.5\n";
    return path.string();
  }

  std::string arguments(const std::string& path) const {
    return "sweep " + path + " --out " + (folder_ / "out").string();
  }

  std::filesystem::path run_folder(const std::string& name) const {
    return folder_ / ("out/tiny/" + name);
  }

  // Each process that works on a run adds a line.
  int sessions(const std::string& name) const {
    return program::lines(program::content(run_folder(name) / "sessions.jsonl"));
  }

  const TemporaryFolder folder_;
};

inline bool wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 600; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace hdetach
