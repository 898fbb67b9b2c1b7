#include "report/markup.h"

#include "formats/toml.h"

namespace hdetach::report {

std::string escaped(const std::string& text) {
  const bool is_utf8 = toml::is_utf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += c;
        break;
      default:
        out += byte < 0x20 || (byte >= 0x80 && !is_utf8) ? '?' : c;
    }
  }
  return out;
}

}  // namespace hdetach::report
