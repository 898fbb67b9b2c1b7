#include "formats/toml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <system_error>
#include <unordered_map>

#include "formats/toml_text.h"

namespace hdetach::toml {
namespace {

constexpr int kMostDepth = 32;                  // of arrays in arrays: reading and freeing recurse
constexpr size_t kMostBytes = size_t{1} << 26;  // of a file, so that a line number fits an int

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_bare(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

// Copies the digits at `at`, less the underscores between them, and moves `at` behind them; false
// where there are none.
bool take_digits(std::string_view text, size_t& at, std::string& digits) {
  const size_t before = digits.size();
  while (at < text.size()) {
    const bool joins =
        text[at] == '_' && digits.size() > before && at + 1 < text.size() && is_digit(text[at + 1]);
    if (joins) ++at;
    if (!is_digit(text[at])) break;
    digits += text[at++];
  }
  return digits.size() > before;
}

bool looks_like_date(std::string_view token) {
  size_t digits = 0;
  while (digits < token.size() && is_digit(token[digits])) ++digits;
  if (digits == token.size()) return false;
  return (digits == 4 && token[digits] == '-') || (digits == 2 && token[digits] == ':');
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Table parse() {
    check_characters();
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;  // the mark that some editors put first
    while (skip_lines(), !done()) {
      if (peek() == '[') {
        header();
      } else {
        pair();
      }
      skip_blank();
      if (!done() && peek() != '\n' && peek() != '#') {
        fail(rest_of_line() + " follows the end; put it on a line of its own");
      }
    }
    return std::move(root_);
  }

 private:
  // A table that is being filled, and where in it each key stands.
  struct Scope {
    Table* table;
    std::unordered_map<std::string, size_t> places;
  };

  [[noreturn]] void fail(const std::string& what) const { fail(what, line_); }
  [[noreturn]] void fail(const std::string& what, int line) const {
    throw Error(name_ + ":" + std::to_string(line) + ": " + what);
  }

  // Once for the whole text, so that no other place need think of it.
  void check_characters() {
    if (text_.size() > kMostBytes) fail("the file is larger than 64 MiB; is it a configuration?");
    int line = 1;
    for (size_t i = 0; i < text_.size();) {
      const unsigned char c = static_cast<unsigned char>(text_[i]);
      const size_t length = utf8_length(text_.substr(i));
      if (length == 0) fail("the bytes are not UTF-8; save the file as UTF-8", line);
      const bool line_end = c == '\n' || (c == '\r' && text_.substr(i, 2) == "\r\n");
      if ((c < 0x20 && c != '\t' && !line_end) || c == 0x7F) {
        fail("control character " + std::to_string(c) + "; remove it, or write it as \\u00XX",
             line);
      }
      if (c == '\n') ++line;
      i += length;
    }
  }

  bool done() const { return at_ == text_.size(); }
  char peek() const { return text_[at_]; }
  bool take(char c) {
    if (done() || peek() != c) return false;
    ++at_;
    return true;
  }

  std::string rest_of_line() const {  // for messages
    const size_t end = std::min(text_.find_first_of("\r\n", at_), text_.size());
    return end == at_ ? "the end of the line" : excerpt(text_.substr(at_, end - at_));
  }

  void skip_blank() {  // a \r is blank: the check leaves it only before \n
    while (!done() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) ++at_;
  }

  void skip_lines() {  // blanks, comments and line ends
    for (skip_blank(); !done(); skip_blank()) {
      if (peek() == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (take('\n')) {
        ++line_;
      } else {
        return;
      }
    }
  }

  std::string key() {
    if (!done() && (peek() == '"' || peek() == '\'')) return string();
    const size_t begin = at_;
    while (!done() && is_bare(peek())) ++at_;
    if (at_ == begin) {
      fail("a key must stand before " + rest_of_line() +
           "; it has letters, digits, - and _, or stands in quotes");
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  void refuse_dot() {
    skip_blank();
    if (!done() && peek() == '.') {
      fail("dotted keys are not read; write one [table] and its keys below it");
    }
  }

  void header() {
    const int line = line_;
    ++at_;
    const bool many = take('[');
    skip_blank();
    std::string name = key();
    refuse_dot();
    if (!take(']') || (many && !take(']'))) {
      fail("the table header is not closed; write " +
           (many ? "[[" + name + "]]" : "[" + name + "]"));
    }
    const auto known = root_scope_.places.find(name);
    if (known == root_scope_.places.end()) {
      Value& value = add(root_scope_, std::move(name), line);
      if (many) value.data = Array(1, Value{Table(), line});
      open(many ? std::get<Array>(value.data).front() : value);
      return;
    }
    Value& value = root_[known->second].value;
    Array* tables = std::get_if<Array>(&value.data);
    // Inline tables are not read, so an array that holds a table came from [[headers]].
    const bool extends = many && tables != nullptr && !tables->empty() &&
                         std::holds_alternative<Table>(tables->front().data);
    if (!extends) fail_twice(name, value.line);
    tables->push_back(Value{Table(), line});
    open(tables->back());
  }

  // The keys that follow go into `value`, which becomes a table.
  void open(Value& value) {
    table_scope_ = Scope{&value.data.emplace<Table>(), {}};
    scope_ = &table_scope_;
  }

  void pair() {
    const int line = line_;
    std::string name = key();
    refuse_dot();
    if (!take('=')) fail("= must follow the key " + excerpt(name) + "; write key = value");
    const auto known = scope_->places.find(name);
    if (known != scope_->places.end()) {
      fail_twice(name, (*scope_->table)[known->second].value.line);
    }
    skip_blank();
    Value read = value(1);
    add(*scope_, std::move(name), line) = std::move(read);
  }

  [[noreturn]] void fail_twice(const std::string& name, int first) const {
    fail(excerpt(name) + " is defined twice, first on line " + std::to_string(first) +
         "; keep one of them");
  }

  static Value& add(Scope& scope, std::string name, int line) {
    scope.places.emplace(name, scope.table->size());
    scope.table->push_back(Entry{std::move(name), Value{Table(), line}});
    return scope.table->back().value;
  }

  Value value(int depth) {
    const int line = line_;
    if (done() || peek() == '\n' || peek() == '#') fail("a value is missing; write key = value");
    switch (peek()) {
      case '"':
      case '\'':
        return {string(), line};
      case '[':
        return {array(depth), line};
      case '{':
        fail("inline tables are not read; write a [table] and its keys below it");
      default:
        return scalar();
    }
  }

  Array array(int depth) {
    if (depth > kMostDepth) {
      fail("arrays nest deeper than " + std::to_string(kMostDepth) + "; nest them less");
    }
    const int line = line_;
    ++at_;
    Array items;
    for (skip_lines(); !take(']'); skip_lines()) {
      if (done()) fail("the array that opens here has no ]; close it", line);
      items.push_back(value(depth + 1));
      skip_lines();
      if (!take(',') && !done() && peek() != ']') {
        fail(", or ] must stand before " + rest_of_line() + " in the array that opens on line " +
             std::to_string(line));
      }
    }
    return items;
  }

  std::string string() {
    const char quote = peek();
    const std::string_view three = text_.substr(at_, 3);
    if (three == "\"\"\"" || three == "'''") {
      fail("strings of several lines are not read; use one line, and \\n for a line break");
    }
    ++at_;
    std::string out;
    while (!take(quote)) {
      if (done() || peek() == '\n' || peek() == '\r') {
        fail(std::string("the string has no closing ") + quote + "; close it on its own line");
      }
      const char c = text_[at_++];
      if (c == '\\' && quote == '"') {
        escape(out);
      } else {
        out += c;
      }
    }
    return out;
  }

  void escape(std::string& out) {
    const char c = done() ? '\n' : text_[at_];
    const size_t place = kEscapes.find(c);
    if (place != std::string_view::npos) {
      ++at_;
      out += kEscaped[place];
    } else if (c == 'u' || c == 'U') {
      ++at_;
      code_point(c == 'u' ? 4 : 8, out);
    } else {
      fail("unknown escape in a string; write \\\\ for a backslash, or put the string in '...'");
    }
  }

  void code_point(size_t digits, std::string& out) {
    const std::string_view hex = text_.substr(at_, digits);
    uint32_t code = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (error != std::errc() || hex.size() < digits || end != hex.data() + digits) {
      fail("\\u takes 4 hexadecimal digits and \\U takes 8; complete them");
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail(excerpt(hex) + " is no Unicode character; surrogates and codes above 10FFFF are none");
    }
    at_ += digits;
    append_utf8(code, out);
  }

  Value scalar() {
    const size_t end = std::min(text_.find_first_of(" \t\r\n,]#", at_), text_.size());
    const std::string_view token = text_.substr(at_, end - at_);
    if (token.empty()) fail("a value must stand before " + rest_of_line());
    at_ = end;
    if (token == "true" || token == "false") return {token == "true", line_};
    const bool is_signed = token[0] == '+' || token[0] == '-';
    const std::string_view magnitude = token.substr(is_signed ? 1 : 0);
    if (magnitude == "inf" || magnitude == "nan") {
      using Limits = std::numeric_limits<double>;
      const double read = magnitude == "inf" ? Limits::infinity() : Limits::quiet_NaN();
      return {std::copysign(read, token[0] == '-' ? -1.0 : 1.0), line_};
    }
    if (looks_like_date(token)) {
      fail("the date or time " + excerpt(token) + " is not read; write it as a string, in quotes");
    }
    if (magnitude.empty() || !is_digit(magnitude[0])) {
      fail(excerpt(token) + " is not a value; strings stand in quotes, numbers start with a digit");
    }
    return number(token, magnitude);
  }

  Value number(std::string_view token, std::string_view magnitude) const {
    if (magnitude.size() > 1 && magnitude[0] == '0') {
      if (magnitude[1] == 'x' || magnitude[1] == 'o' || magnitude[1] == 'b') {
        fail(excerpt(token) + ": only decimal numbers are read; write it in decimal");
      }
      if (is_digit(magnitude[1]) || magnitude[1] == '_') {
        fail(excerpt(token) + " starts with a zero; remove it");
      }
    }
    std::string plain(token[0] == '-' ? "-" : "");
    size_t at = 0;
    bool is_float = false;
    bool valid = take_digits(magnitude, at, plain);
    if (valid && at < magnitude.size() && magnitude[at] == '.') {
      is_float = true;
      plain += magnitude[at++];
      valid = take_digits(magnitude, at, plain);
    }
    if (valid && at < magnitude.size() && (magnitude[at] == 'e' || magnitude[at] == 'E')) {
      is_float = true;
      plain += magnitude[at++];
      if (at < magnitude.size() && (magnitude[at] == '+' || magnitude[at] == '-')) {
        plain += magnitude[at++];
      }
      valid = take_digits(magnitude, at, plain);
    }
    if (!valid || at < magnitude.size()) {
      fail(excerpt(token) + " is not a number; write 10, 1_000, 0.5 or 1e-3");
    }
    const char* const end = plain.data() + plain.size();
    if (is_float) {
      double read = 0.0;
      if (std::from_chars(plain.data(), end, read).ec == std::errc()) return {read, line_};
      fail(excerpt(token) + " is beyond the range of a 64-bit float; write one within it");
    }
    int64_t read = 0;
    if (std::from_chars(plain.data(), end, read).ec == std::errc()) return {read, line_};
    fail(excerpt(token) + " is beyond the range of a 64-bit integer; write one within it");
  }

  const std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  Table root_;
  Scope root_scope_{&root_, {}};
  Scope table_scope_{nullptr, {}};  // of the last [header]
  Scope* scope_ = &root_scope_;
};

}  // namespace

Table parse(std::string_view text, const std::string& name) { return Parser(text, name).parse(); }

const Value* find(const Table& table, std::string_view key) {
  for (const Entry& entry : table) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

}  // namespace hdetach::toml
