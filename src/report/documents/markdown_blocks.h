// Where the generated parts of a Markdown file are. A block lies between two lines of its own:
//
//   <!-- hdetach settings ../results/copy-300 plain detach-0.5 -->
//   <!-- end -->
//
// Markers in fenced code and indented ones are text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hdetach::report {

struct MarkdownBlock {
  int line = 0;                    // of its first marker, from 1
  std::vector<std::string> words;  // of that marker, behind "hdetach"
  size_t begin = 0, end = 0;       // the bytes between the markers' lines
  bool carriage_returns = false;   // lines end with "\r\n"
};

// `path` stands in the messages. Throws std::runtime_error ("path:line: ...").
std::vector<MarkdownBlock> find_blocks(const std::string& text, const std::string& path);

// Lines that end with "\n", as the lines of the block end.
std::string with_line_ends(const MarkdownBlock& block, const std::string& lines);

// The text with the contents in place of what the blocks hold.
std::string with_contents(const std::string& text, const std::vector<MarkdownBlock>& blocks,
                          const std::vector<std::string>& contents);

}  // namespace hdetach::report
