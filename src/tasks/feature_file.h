// Writes the files that tensor_features.h reads, row by row: numbers are halves (F16). A file that
// is not complete has the name PATH.part, and a later process goes on with it. An image that was
// skipped has a row of zeros, and -1 - id in place of its id: readers find no such image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "formats/files.h"
#include "formats/safetensors.h"

namespace hdetach::tasks {

class FeatureFile {
 public:
  // Goes on with the file where it is there already. Throws std::runtime_error, naming what
  // differs, where that one has other settings, another shape or other ids. `settings` are what
  // decides the numbers; they stand in the header.
  FeatureFile(const std::filesystem::path& path, std::vector<int64_t> ids, int64_t positions,
              int64_t channels, const safetensors::Metadata& settings);

  int64_t images() const { return static_cast<int64_t>(ids_.size()); }
  int64_t done() const { return done_; }  // images
  bool is_complete() const { return !part_; }

  void cut(int64_t images);  // back to its first rows, of one that is not complete
  // `rows` are [images, positions, channels]. Throws where one is too large for a half or is not
  // a number; then nothing is appended.
  void append(const std::vector<float>& rows);
  void complete();  // once all rows are there

  // Whether the image of that row is skipped; said before the row is appended.
  void mark(int64_t row, bool is_skipped);
  bool is_skipped(int64_t row) const { return skipped_[static_cast<size_t>(row)]; }

 private:
  // The start of a file with the ids of all images; those that it skips are marked here.
  std::string with_every_id(std::string start);

  std::filesystem::path path_;
  std::vector<int64_t> ids_;
  int64_t row_;    // numbers in it
  int64_t start_;  // bytes before the rows
  int64_t done_ = 0;
  std::vector<bool> skipped_;
  std::optional<files::GrowingFile> part_;  // none when it is complete
};

}  // namespace hdetach::tasks
