// What each kind of block of a document holds. docs/report.md lists them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/documents/result_folders.h"

namespace hdetach::report {

struct BlockPicture {
  std::filesystem::path path;
  std::string svg;
};

struct BlockContent {
  std::string text;  // lines that end with "\n"
  std::optional<BlockPicture> picture;
};

// `words`: of the marker, the kind first; paths among them are relative to `folder`. Throws
// std::runtime_error.
BlockContent block_content(const std::vector<std::string>& words,
                           const std::filesystem::path& folder, ResultFolders& results);

}  // namespace hdetach::report
