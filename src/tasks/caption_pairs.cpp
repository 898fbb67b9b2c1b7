#include "tasks/caption_pairs.h"

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "formats/coco_captions.h"
#include "formats/files.h"
#include "tasks/ptb_tokenizer.h"
#include "tasks/side_by_side.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int64_t image, const std::string& what) {
  throw std::runtime_error(path.string() + ": image " + std::to_string(image) + " " + what);
}

}  // namespace

std::vector<CaptionPair> read_caption_pairs(const fs::path& references, const fs::path& candidates,
                                            int threads) {
  std::vector<CaptionPair> images;
  std::unordered_map<int64_t, size_t> places;
  for (coco::Caption& candidate :
       coco::parse_candidates(files::read(candidates), candidates.string())) {
    if (!places.emplace(candidate.image_id, images.size()).second) {
      fail(candidates, candidate.image_id, "has two captions; leave one");
    }
    images.push_back({candidate.image_id, std::move(candidate.text), {}});
  }
  if (images.empty()) throw std::runtime_error(candidates.string() + ": there is no caption in it");
  for (coco::Caption& reference :
       coco::parse_references(files::read(references), references.string())) {
    const auto place = places.find(reference.image_id);
    if (place == places.end()) continue;
    images[place->second].references.push_back(std::move(reference.text));
  }
  for (const CaptionPair& image : images) {
    if (!image.references.empty()) continue;
    fail(candidates, image.image_id, "has a caption, but no reference in " + references.string());
  }
  side_by_side(images.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      images[i].candidate = ptb_tokenize(images[i].candidate);
      for (std::string& reference : images[i].references) reference = ptb_tokenize(reference);
    }
  });
  return images;
}

}  // namespace hdetach::tasks
