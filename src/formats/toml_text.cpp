#include "formats/toml_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "formats/toml.h"

namespace hdetach::toml {
namespace {

bool is_control(char c) {
  const unsigned char code = static_cast<unsigned char>(c);
  return code < 0x20 || code == 0x7F;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, a surrogate, or beyond U+10FFFF: the second byte tells.
  const unsigned second = byte(1);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return wrong ? 0 : length;
}

void append_utf8(uint32_t code, std::string& out) {
  const auto tail = [&out](uint32_t bits) { out += static_cast<char>(0x80 | (bits & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(code);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(code >> 6);
    tail(code);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(code >> 12);
    tail(code >> 6);
    tail(code);
  }
}

std::string excerpt(std::string_view text) {
  constexpr size_t kMost = 40;
  size_t end = 0;
  while (end < text.size() && end < kMost) {
    end += std::max(utf8_length(text.substr(end)), size_t{1});
  }
  std::string out(text.substr(0, end));
  std::replace_if(out.begin(), out.end(), is_control, '?');
  return "`" + out + (end < text.size() ? "...`" : "`");
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quoted(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const size_t place = kEscaped.find(c);
    const unsigned char code = static_cast<unsigned char>(c);
    if (place != std::string_view::npos) {
      out += '\\';
      out += kEscapes[place];
    } else if (is_control(c)) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double value) {
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, std::end(buffer), value).ptr);
  if (text.find_first_of(".enf") == std::string::npos) text += ".0";
  return text;
}

}  // namespace hdetach::toml
