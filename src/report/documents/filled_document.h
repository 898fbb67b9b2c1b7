// A Markdown file with its blocks filled in from results.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/documents/block_kinds.h"

namespace hdetach::report {

struct FilledBlock {
  int line;            // of its marker
  std::string marker;  // its words
  bool changed;        // it held something else
  std::optional<BlockPicture> picture;
};

struct FilledDocument {
  std::string text;
  std::vector<FilledBlock> blocks;
};

// `text`: of the file `path`, which stands in the messages and to which paths are relative. Throws
// std::runtime_error ("path:line: ..."). Writes nothing.
FilledDocument filled(const std::string& text, const std::filesystem::path& path,
                      ResultFolders& results);

}  // namespace hdetach::report
