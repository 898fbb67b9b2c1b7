#include "formats/tab_table.h"

#include <fmt/core.h>

#include <charconv>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "formats/toml.h"
#include "formats/toml_text.h"

namespace hdetach {

TabTable::TabTable(std::string_view text, std::string name, size_t columns)
    : rest_(text), name_(std::move(name)), fields_(columns) {}

bool TabTable::next() {
  if (rest_.empty()) return false;
  ++line_;
  const size_t end = rest_.find('\n');
  std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (!toml::is_utf8(line)) fail("the bytes are not UTF-8; save the file as UTF-8");
  for (size_t column = 0; column + 1 < fields_.size(); ++column) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) {
      fail(fmt::format("{} fields apart by tabs are expected, here are {}", fields_.size(),
                       column + 1));
    }
    fields_[column] = line.substr(0, tab);
    line.remove_prefix(tab + 1);
  }
  fields_.back() = line;
  return true;
}

int64_t TabTable::whole(size_t column) const {
  const std::string_view text = fields_[column];
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(fmt::format("field {} is {}, not a whole number", column + 1, toml::excerpt(text)));
  }
  return value;
}

void TabTable::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: line {}: {}", name_, line_, what));
}

}  // namespace hdetach
