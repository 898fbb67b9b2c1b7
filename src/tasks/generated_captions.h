// A captioning task that needs no data: an image is a number of things of a colour in a place, its
// features say so in noise, and five captions tell it in different orders of words.
#pragma once

#include <cstdint>

#include "tasks/caption_set.h"

namespace hdetach::tasks {

// Image i of a split is a function of the seed, the split and i alone; what a feature means is the
// same for all seeds. Spatial: the things are at one of nine positions, the place at the others.
CaptionData generated_captions(int64_t train, int64_t valid, int64_t test, bool spatial,
                               uint64_t seed);

}  // namespace hdetach::tasks
