#include "report/documents/markdown.h"

#include <cstring>

namespace hdetach::report {
namespace {

std::string escaped_signs(const std::string& text, const char* signs) {
  std::string out;
  for (const char c : text) {
    if (std::strchr(signs, c) != nullptr && c != '\0') out += '\\';
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? ' ' : c;  // a line's end would end the cell
  }
  return out;
}

}  // namespace

std::string markdown_text(const std::string& text) { return escaped_signs(text, "\\`*_[]<>|"); }

std::string markdown_code(const std::string& text) {
  std::string fence = "`";
  while (text.find(fence) != std::string::npos) fence += '`';
  const char* const gap = fence.size() > 1 ? " " : "";
  return fence + gap + escaped_signs(text, "|") + gap + fence;
}

void MarkdownTable::add(std::string heading, std::vector<std::string> cells) {
  columns_.emplace_back(std::move(heading), std::move(cells));
}

std::string MarkdownTable::text() const {
  std::string heading = "|", rule = "|", rows;
  for (const auto& [name, cells] : columns_) {
    heading += name.empty() ? " |" : " " + name + " |";
    rule += "---|";
  }
  for (size_t row = 0; !columns_.empty() && row < columns_[0].second.size(); ++row) {
    rows += "|";
    for (const auto& [name, cells] : columns_) {
      rows += cells[row].empty() ? " |" : " " + cells[row] + " |";
    }
    rows += "\n";
  }
  return heading + "\n" + rule + "\n" + rows;
}

}  // namespace hdetach::report
