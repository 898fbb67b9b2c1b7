// The bench answers first whether a kernel is right, then how fast it is.
#pragma once

#include <string>

#include "cli/bench_case.h"
#include "cli/bench_steps.h"

namespace hdetach::cli {

// Compares the kernel's outputs and every gradient with the float64 reference on a shortened
// sequence of the case, all on `device`, by the rule of op/error_budget.h. Throws
// std::runtime_error naming the tensor, its error and what is allowed.
void check_kernel(const BenchCase& shape, const std::string& kernel, double detach,
                  at::Device device);

// Runs both steps and throws std::runtime_error unless they agree: a fair race has one course.
void check_peer(const std::string& name, TrainStep& peer, TrainStep& ours);

}  // namespace hdetach::cli
