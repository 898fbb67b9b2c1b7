// Karpathy's dataset files (dataset_coco.json, dataset_flickr8k.json, dataset_flickr30k.json):
// images, their split and their captions. A file has 140 MB: it is read image by image.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hdetach::karpathy {

struct Image {
  int64_t id = -1;                    // cocoid; where there is none id, or else imgid
  std::string split;                  // as the file has it
  std::string folder;                 // "filepath", empty where the file has none
  std::string file;                   // "filename", likewise
  std::vector<std::string> captions;  // as they were written
  // The captions as Karpathy's words joined by single spaces; an empty string where the file has
  // none.
  std::vector<std::string> words;
};

// "dataset_coco.json: image 7 (id 42): what is wrong", or with a byte where it is not JSON
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Gives each image in the order of the file, and `name` stands in the messages. Any bytes are safe:
// what is not such a file throws Error. Fields that are not needed are passed over. What `take`
// throws comes through.
void read(std::string_view bytes, const std::string& name, const std::function<void(Image)>& take);

}  // namespace hdetach::karpathy
