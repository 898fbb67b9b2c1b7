// Images as a network takes them: a square of fixed size, whatever the image's own shape.
#pragma once

#include <cstdint>

#include "formats/jpeg.h"

namespace hdetach::tasks {

// Both sides are stretched or shrunk to `side` pixels each, bilinearly; where an image shrinks,
// every pixel of it counts (triangles as wide as the reduction), so that nothing is aliased.
// `to` is [side, side, 3], 0 to 255, not rounded. The image has at least one pixel.
void squash(const jpeg::Image& image, int64_t side, float* to);

}  // namespace hdetach::tasks
