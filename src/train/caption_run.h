// A captioning run that has trained, opened for reading. Torch-free, as `hdetach caption` is.
#pragma once

#include <filesystem>
#include <memory>

#include "tasks/image_features.h"
#include "tasks/vocabulary.h"
#include "train/config.h"

namespace hdetach {
class Captioner;
}

namespace hdetach::train {

// words.txt of the run. Words made anew from its data would be others as soon as the data is.
tasks::Vocabulary read_words(const std::filesystem::path& run);

// The best model of the run, for features of that shape, on the device of the configuration. Throws
// std::runtime_error where words.txt or the features are not those of the weights.
std::shared_ptr<Captioner> load_captioner(const Config& config, const std::filesystem::path& run,
                                          const tasks::Vocabulary& words,
                                          const tasks::ImageFeatures& features);

}  // namespace hdetach::train
