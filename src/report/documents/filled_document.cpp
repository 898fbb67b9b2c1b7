#include "report/documents/filled_document.h"

#include <fmt/core.h>

#include <stdexcept>

#include "report/documents/markdown_blocks.h"

namespace hdetach::report {

FilledDocument filled(const std::string& text, const std::filesystem::path& path,
                      ResultFolders& results) {
  const std::vector<MarkdownBlock> blocks = find_blocks(text, path.string());
  FilledDocument out;
  std::vector<std::string> contents;
  for (const MarkdownBlock& block : blocks) {
    try {
      BlockContent content = block_content(block.words, path.parent_path(), results);
      std::string marker;
      for (const std::string& word : block.words) marker += (marker.empty() ? "" : " ") + word;
      const std::string lines = with_line_ends(block, content.text);
      const bool changed = text.compare(block.begin, block.end - block.begin, lines) != 0;
      out.blocks.push_back({block.line, marker, changed, std::move(content.picture)});
      contents.push_back(lines);
    } catch (const std::exception& problem) {
      throw std::runtime_error(fmt::format("{}:{}: {}", path.string(), block.line, problem.what()));
    }
  }
  out.text = with_contents(text, blocks, contents);
  return out;
}

}  // namespace hdetach::report
