// The trainer's whole update: on the CPU beside the bare op, on a GPU with all that an epoch takes.
#pragma once

#include <string>

#include "cli/bench_case.h"
#include "tasks/sequence_set.h"
#include "train/config.h"

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

// A run with the sizes of a case.
train::Config bench_config(const BenchCase& shape, double detach);
// Its data, with so many images of noise where it would need files: the time of an update does not
// depend on what they show.
tasks::Task bench_task(const BenchCase& shape, const train::Config& config, int64_t images);

// Both in turn, on copy100, copy300 or mnist.
TrainerRow time_trainer(const BenchCase& shape, double detach, int threads, int repeats);

std::string trainer_json(const TrainerRow& row);
std::string trainer_table_head();
std::string trainer_table_line(const TrainerRow& row);

// Runs that differ in their seed alone, trained side by side on a GPU.
struct CudaTrainerRow {
  BenchCase shape;
  double detach;
  int replicas;
  std::string gpu;
  double update_ms;           // of one update of every replica, median over blocks of updates
  double epoch_seconds;       // 1,000 such updates and the validation on 5,000 sequences each
  double updates_per_second;  // of all replicas together, validation included
};

CudaTrainerRow time_cuda_trainer(const BenchCase& shape, double detach, int replicas, int repeats);

std::string trainer_json(const CudaTrainerRow& row);
std::string cuda_trainer_table_head();
std::string trainer_table_line(const CudaTrainerRow& row);

}  // namespace hdetach::cli
