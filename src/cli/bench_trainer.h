// What the trainer costs beside the op.
#pragma once

#include <string>

#include "cli/bench_case.h"

namespace hdetach::cli {

struct TrainerRow {
  BenchCase shape;
  std::string kernel;
  double detach;
  int threads;
  double op_ms;      // forward and backward pass of the bare op, median
  double update_ms;  // a whole update: data, passes, loss, clipping, Adam; median
  double ratio;      // median over the repeats of update / op
};

// Both in turn, on the shape of a task: copying when every step is scored, MNIST when I is 1.
TrainerRow time_trainer(const BenchCase& shape, double detach, int threads, int repeats);

std::string trainer_json(const TrainerRow& row);
std::string trainer_table_head();
std::string trainer_table_line(const TrainerRow& row);

}  // namespace hdetach::cli
