#include "report/documents/markdown_blocks.h"

#include <fmt/core.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace hdetach::report {
namespace {

constexpr std::string_view kBlockStart = "<!-- hdetach ", kMarkerEnd = "-->";
constexpr std::string_view kBlockEnd = "<!-- end -->";

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

std::string_view without_end(std::string_view line) {
  const size_t last = line.find_last_not_of(" \t\r\n");
  return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// Fenced code: opened by three or more of a sign, closed by as many alone on a line.
class Fence {
 public:
  // Whether the line belongs to fenced code, its fences included.
  bool holds(std::string_view line) {
    const size_t indent = line.find_first_not_of(' ');
    const bool may_be = indent != std::string_view::npos && indent <= 3 &&
                        (line[indent] == '`' || line[indent] == '~');
    const std::string_view rest = may_be ? line.substr(indent) : std::string_view();
    const size_t after = may_be ? rest.find_first_not_of(rest[0]) : 0;
    const size_t length = after == std::string_view::npos ? rest.size() : after;
    if (open_.empty()) {
      // `code` on one line is no fence.
      const bool inline_code = may_be && rest[0] == '`' && rest.find('`', length) != rest.npos;
      if (length < 3 || inline_code) return false;
      open_ = std::string(rest.substr(0, length));
    } else if (may_be && rest[0] == open_[0] && length >= open_.size() && length == rest.size()) {
      open_.clear();
    }
    return true;
  }

 private:
  std::string open_;
};

std::vector<std::string> marker_words(std::string_view marker) {
  marker.remove_prefix(kBlockStart.size());
  marker.remove_suffix(kMarkerEnd.size());
  std::istringstream stream{std::string(marker)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

std::vector<MarkdownBlock> find_blocks(const std::string& text, const std::string& path) {
  std::vector<MarkdownBlock> blocks;
  std::optional<MarkdownBlock> open;
  Fence fence;
  int number = 0;
  const auto fail = [&](int line, const std::string& message) {
    throw std::runtime_error(fmt::format("{}:{}: {}", path, line, message));
  };
  for (size_t from = 0, to = 0; from < text.size(); from = to) {
    const size_t newline = text.find('\n', from);
    to = newline == std::string::npos ? text.size() : newline + 1;
    const std::string_view whole = std::string_view(text).substr(from, to - from);
    const std::string_view line = without_end(whole);
    ++number;
    if (!open && fence.holds(line)) continue;
    if (starts_with(line, kBlockStart)) {
      if (open) {
        fail(number, fmt::format("a block inside the block of line {}, which has no {} yet",
                                 open->line, kBlockEnd));
      }
      if (line.size() < kBlockStart.size() + kMarkerEnd.size() ||
          line.substr(line.size() - kMarkerEnd.size()) != kMarkerEnd) {
        fail(number, fmt::format("the marker must end with {} on its line", kMarkerEnd));
      }
      const bool returns = whole.size() > 1 && whole.substr(whole.size() - 2) == "\r\n";
      open = MarkdownBlock{number, marker_words(line), to, to, returns};
    } else if (line == kBlockEnd) {
      if (!open) fail(number, fmt::format("{} ends no block", kBlockEnd));
      open->end = from;
      blocks.push_back(*open);
      open.reset();
    }
  }
  if (open) fail(open->line, fmt::format("the block has no {}", kBlockEnd));
  return blocks;
}

std::string with_line_ends(const MarkdownBlock& block, const std::string& lines) {
  std::string out;
  for (const char c : lines) {
    if (c == '\n' && block.carriage_returns) out += '\r';
    out += c;
  }
  return out;
}

std::string with_contents(const std::string& text, const std::vector<MarkdownBlock>& blocks,
                          const std::vector<std::string>& contents) {
  std::string out;
  size_t from = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    out += text.substr(from, blocks[i].begin - from) + contents[i];
    from = blocks[i].end;
  }
  return out + text.substr(from);
}

}  // namespace hdetach::report
