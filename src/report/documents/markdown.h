// Markdown as GitHub reads it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hdetach::report {

// Text that stands for itself, in a table too.
std::string markdown_text(const std::string& text);
std::string markdown_code(const std::string& text);

// Made column by column, since many are there only where some row has something in it.
class MarkdownTable {
 public:
  // Both are Markdown. One cell for each row, as in the columns before.
  void add(std::string heading, std::vector<std::string> cells);
  std::string text() const;  // ends with a newline

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> columns_;
};

}  // namespace hdetach::report
