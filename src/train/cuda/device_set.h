// A set of sequences in device memory: a byte for each step, whatever the inputs.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tasks/sequence_set.h"
#include "train/cuda/device_memory.h"
#include "train/cuda/replica.h"

namespace hdetach::train {

class DeviceSet {
 public:
  DeviceSet(std::shared_ptr<const tasks::SequenceSet> set, const Stream& stream);
  SetView view() const { return {codes_.get(), targets_.get(), table_.get()}; }

 private:
  std::shared_ptr<const tasks::SequenceSet> set_;  // alive, so that its address stays its name
  DeviceArray<uint8_t> codes_, targets_;
  DeviceArray<float> table_;
};

// Runs that share a set share its copy.
class DeviceSets {
 public:
  SetView view(const std::shared_ptr<const tasks::SequenceSet>& set, const Stream& stream) {
    std::unique_ptr<DeviceSet>& copy = sets_[set.get()];
    if (copy == nullptr) copy = std::make_unique<DeviceSet>(set, stream);
    return copy->view();
  }

 private:
  std::map<const tasks::SequenceSet*, std::unique_ptr<DeviceSet>> sets_;
};

}  // namespace hdetach::train
