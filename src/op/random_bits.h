// The project's one source of randomness: number n of a stream depends on the stream's seed and n
// alone, so every draw can be repeated anywhere without a state to carry.
#pragma once

#include <cstdint>

#ifdef __CUDACC__  // the CUDA trainer draws the same numbers on the device
#define HDETACH_ON_DEVICE __host__ __device__
#else
#define HDETACH_ON_DEVICE
#endif

namespace hdetach {

// SplitMix64 (Steele, Lea and Flood 2014): a Weyl sequence and its finaliser.
constexpr uint64_t kWeyl = 0x9E3779B97F4A7C15;

HDETACH_ON_DEVICE constexpr uint64_t mix_bits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

HDETACH_ON_DEVICE constexpr uint64_t random_bits(uint64_t seed, uint64_t n) {
  // The seed is mixed first: seeds a multiple of kWeyl apart would otherwise share one stream.
  return mix_bits(mix_bits(seed + kWeyl) + n * kWeyl);
}

HDETACH_ON_DEVICE constexpr double random_uniform(uint64_t seed, uint64_t n) {  // in [0,1)
  return static_cast<double>(random_bits(seed, n) >> 11) * 0x1p-53;
}

// In [0, bound): the upper half of a product, uniform to within bound / 2^64.
HDETACH_ON_DEVICE inline uint64_t random_below(uint64_t seed, uint64_t n, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(random_bits(seed, n)) * bound) >>
                               64);
}

}  // namespace hdetach
