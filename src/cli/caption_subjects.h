// The images that hdetach caption is asked about: a split of a run's data, or JPEG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tasks/image_features.h"
#include "train/config.h"

namespace hdetach::cli {

struct Subject {
  std::string name;            // its id, or its file
  int64_t id = 0;              // of an image of a split
  int64_t row = 0;             // in the features
  std::filesystem::path jpeg;  // empty: not at hand
  std::string picture;         // name of a picture of it, without its extension
};

struct Subjects {
  std::shared_ptr<const tasks::ImageFeatures> features;
  std::vector<Subject> list;
};

struct SplitOptions {
  std::string split;       // train, val or test
  std::string data;        // empty means the folder the run was trained on
  std::string images;      // folder of the image files; empty: they are not at hand
  std::string references;  // file for the references, as hdetach score reads them; empty: none
  int64_t limit = 0;       // images; 0: all
};
Subjects subjects_of_split(const train::Config& config, const SplitOptions& options);

struct FileOptions {
  std::vector<std::string> files;
  std::string weights;    // of the network that makes the features
  int64_t positions = 0;  // of the features the run was trained on; 0: as its data has them
  bool pictures = false;  // they need names of their own
};
// `run` is named in messages. Throws a usage error where options do not fit the run.
Subjects subjects_in_files(const train::Config& config, const std::string& run,
                           const FileOptions& options);

}  // namespace hdetach::cli
