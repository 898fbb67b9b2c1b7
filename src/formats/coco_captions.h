// The two JSON files of the COCO caption evaluation: references, {"annotations": [{"image_id": 1,
// "id": 2, "caption": "..."}, ...]} with whatever else is in it, and candidates, [{"image_id": 1,
// "caption": "..."}, ...].
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace hdetach::coco {

struct Caption {
  int64_t image_id;
  std::string text;  // UTF-8
};

// "results.json: entry 3 (image 42): caption is missing"
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Captions in the order of the file, as many for an image as there are. `name` stands in the
// messages. Any bytes are safe: what is not JSON in UTF-8, or lacks a member or has one of another
// type, throws Error.
std::vector<Caption> parse_references(const std::string& text, const std::string& name);
std::vector<Caption> parse_candidates(const std::string& text, const std::string& name);

}  // namespace hdetach::coco
