// Any bytes as one of Karpathy's dataset files: what is read is whole, and reads the same when it
// is written again.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/karpathy_json.h"

namespace {

namespace karpathy = hdetach::karpathy;
using nlohmann::json;

std::vector<karpathy::Image> read(std::string_view bytes) {
  std::vector<karpathy::Image> images;
  karpathy::read(bytes, "x", [&](karpathy::Image image) { images.push_back(std::move(image)); });
  return images;
}

std::string written(const std::vector<karpathy::Image>& images) {
  json list = json::array();
  for (const karpathy::Image& image : images) {
    if (image.id < 0 || image.captions.empty() || image.words.size() != image.captions.size()) {
      std::abort();
    }
    json sentences = json::array();
    for (size_t i = 0; i < image.captions.size(); ++i) {
      if (image.words[i].find("  ") != std::string::npos) std::abort();
      sentences.push_back({{"raw", image.captions[i]}, {"tokens", json::array({image.words[i]})}});
    }
    list.push_back({{"cocoid", image.id},
                    {"split", image.split},
                    {"filepath", image.folder},
                    {"filename", image.file},
                    {"sentences", sentences}});
  }
  return json{{"images", list}}.dump();  // throws, uncaught, on what is not UTF-8
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The bytes as they lie, without the zero that ends a string: a mapped file has none.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<karpathy::Image> images;
  try {
    images = read(bytes);
  } catch (const karpathy::Error&) {
    return 0;
  }
  const std::string once = written(images);
  if (written(read(once)) != once) std::abort();
  return 0;
}
