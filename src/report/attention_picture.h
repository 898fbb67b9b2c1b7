// Where a captioner looked, as one SVG picture that needs nothing else: the image, then a panel for
// each word with the image dimmed and heat where the word's attention was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdetach::report {

struct AttentionPicture {
  std::string title;                          // what the picture is of
  std::string jpeg;                           // the file's bytes; empty: a plain ground
  int64_t width = 1, height = 1;              // of the image; their ratio counts
  std::vector<std::string> words;             // of the caption
  std::vector<std::vector<float>> attention;  // [words][positions], rows of a square from the top
};

// Throws std::runtime_error where the positions are no square.
std::string to_svg(const AttentionPicture& picture);

}  // namespace hdetach::report
