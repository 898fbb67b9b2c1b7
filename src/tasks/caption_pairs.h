// Candidates beside their references, from the files of the COCO caption evaluation.
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/caption_metrics.h"

namespace hdetach::tasks {

// The images that have a candidate, in the order of that file, captions tokenised. References of
// other images are left out. Throws std::runtime_error, naming file and image, where an image has
// two candidates or no reference, where there is no candidate, and where a file cannot be read.
std::vector<CaptionPair> read_caption_pairs(const std::filesystem::path& references,
                                            const std::filesystem::path& candidates, int threads);

}  // namespace hdetach::tasks
