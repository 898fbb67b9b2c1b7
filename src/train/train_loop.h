// The loop over epochs, for one run or several side by side.
#pragma once

#include <csignal>
#include <optional>
#include <vector>

#include "train/run.h"
#include "train/run_folder.h"
#include "train/trainer_group.h"

namespace hdetach::train {

struct LoopMember {
  RunFolder* folder;
  Observer* observer;
  bool left_out = false;  // it could not begin: nothing is done for it
};

// Trains the runs of the group, whose states are restored, until each is over or `*signal` is set;
// then those under way are saved and their results are empty.
std::vector<std::optional<RunResult>> train_loop(TrainerGroup& group,
                                                 const std::vector<LoopMember>& members,
                                                 const volatile std::sig_atomic_t* signal);

}  // namespace hdetach::train
