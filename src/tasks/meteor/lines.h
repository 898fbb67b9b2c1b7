// The lines of a text, counted, for tables that are read line by line.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hdetach::meteor {

class Lines {
 public:
  // `name` opens every message. Both must outlive the object.
  Lines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  // The next line without its end; false after the last.
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    ++number_;
    const size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(name_ + ": line " + std::to_string(number_) + ": " + what);
  }

 private:
  std::string_view rest_;
  const std::string& name_;
  size_t number_ = 0;
};

// Takes the next word, as blanks part them, off the front of a line; empty when there is none.
inline std::string_view take_word(std::string_view& line) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  const size_t end = line.find_first_of(" \t", begin);
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end);
  return word;
}

}  // namespace hdetach::meteor
