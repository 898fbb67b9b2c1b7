// A sweep while it works: a table that is repainted in place on a terminal, lines elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/sweep_jobs.h"

namespace hdetach::cli {

struct TerminalSize {
  int columns = 80, rows = 24;
};
TerminalSize terminal_size(FILE* stream);  // as given here where the stream is no terminal

// "finished, 600 epochs, best 100.0% at epoch 212", "212 of 600 epochs", "new"
std::string progress(const report::RunRecord& record, const train::Config& config);

class SweepView {
 public:
  SweepView(FILE* stream, const SweepJobs& jobs);

  void show(bool ending);  // at most as often as is worth reading
  void close();            // the last state, which stays

 private:
  std::string status(bool ending) const;  // one line for all
  std::string row(const SweepJob& job) const;
  void paint(bool ending);
  void print_lines(bool ending);
  void print_ended();

  FILE* stream_;
  const SweepJobs& jobs_;
  bool terminal_;
  size_t name_width_ = 0;
  int painted_rows_ = 0;
  std::vector<bool> told_;  // the end of each job was printed
  std::chrono::steady_clock::time_point start_, shown_;
  int64_t updates_at_start_ = 0;
};

}  // namespace hdetach::cli
