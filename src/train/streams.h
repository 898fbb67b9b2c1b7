// A run's randomness comes from one seed. Each use has a stream of its own, so that settings which
// use one of them differently (detach or not, another batch size) still share the others.
#pragma once

#include <cstdint>

#include "op/random_bits.h"

namespace hdetach::train {

enum class Stream : uint64_t {
  kTrainData = 1,
  kValidData,
  kInitialWeights,
  kMinibatches,
  kDetach,
  kPermutation,
  kTransferData,  // fresh sequences of `hdetach eval`
  kDropout,
};

constexpr uint64_t stream_seed(int64_t seed, Stream stream) {
  return random_bits(static_cast<uint64_t>(seed), ~static_cast<uint64_t>(stream));
}

}  // namespace hdetach::train
