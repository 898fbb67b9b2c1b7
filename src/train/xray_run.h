// The x-ray of a run that has trained, opened for reading. Torch-free, as `hdetach xray` is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "train/config.h"
#include "train/metrics.h"
#include "xray/record.h"

namespace hdetach::train {

struct XrayOptions {
  std::vector<double> detach;  // empty means what was in force in the epoch of the weights
  int64_t highest_order = 3;
  std::vector<int64_t> lags;  // empty means xray::usual_lags()
};

// A lag that the sequences do not have.
struct LagError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One record for each detach, of the best weights or the last, whose epoch is given; null where the
// run does not tell. Throws ConfigError where the model
// has paths that the x-ray does not follow, LagError, and what reading the run throws.
std::vector<xray::Record> xray_run(const Config& config, const std::filesystem::path& run,
                                   bool best, const EpochMetrics* epoch,
                                   const XrayOptions& options);

// Of a random network, see xray::random_probe().
std::vector<xray::Record> xray_random(int64_t hidden, int64_t steps, double weight_scale,
                                      int64_t seed, const XrayOptions& options);

}  // namespace hdetach::train
