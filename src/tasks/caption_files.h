// A folder of captions and features, of one of two kinds, which are told apart by looking.
//
// The captions and who trains on them, either
//   dataset*.json                  Karpathy's file, see formats/karpathy_json.h
// or
//   NAME_captions.tsv, .tsv.gz     id TAB caption, a caption a line
//   NAME_images.tsv, .tsv.gz       a line of titles, then id TAB split TAB whether the image
//                                  could be had TAB its row in feat/, or -1
// The splits train and restval train, val validates, test tests.
//
// The features, either
//   train.safetensors, valid.safetensors or val.safetensors, test.safetensors
//                                  arrays "features" and "ids", see tensor_features.h; an image is
//                                  found by its id, in whichever file it is
// or, with NAME_images.tsv,
//   feat/FORMAT.json               see coded_features.h
// An image without features is left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tasks/image_features.h"

namespace hdetach::tasks {

enum class Split { kTrain, kValid, kTest };

struct ListedImage {
  int64_t id = 0;
  Split split = Split::kTrain;
  std::optional<int64_t> row;         // in feat/, where the list says so; -1 where it has none
  std::filesystem::path file;         // the image itself, empty where the list does not say
  std::vector<std::string> captions;  // as people wrote them, at least one
  std::vector<std::string> words;  // of each caption, by single spaces; "" where the list has none
};

// Both throw std::runtime_error, naming the file and the line or id, on anything that is not as
// above.

// Gives each image once, in the order of the list. What `take` throws comes through.
void read_captions(const std::filesystem::path& folder,
                   const std::function<void(ListedImage)>& take);

class FeatureFolder {
 public:
  FeatureFolder(const std::filesystem::path& folder, bool spatial);

  const std::shared_ptr<const ImageFeatures>& features() const { return features_; }
  // Nothing where the image has no features.
  std::optional<int64_t> row(const ListedImage& image) const;

 private:
  std::string name_;  // for messages
  std::shared_ptr<const ImageFeatures> features_;
  bool by_id_ = false;
  std::unordered_map<int64_t, int64_t> rows_;  // by id, where by_id_
};

}  // namespace hdetach::tasks
