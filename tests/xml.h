// Whether a text is well-formed XML, as far as our pictures use it: tags that match, attributes in
// double quotes, none twice in a tag, no bare & or <.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hdetach {

// What is wrong first, with its byte; empty when nothing is.
inline std::string xml_problem(const std::string& text) {
  size_t at = 0;
  const auto wrong = [&at](const std::string& what) {
    return "byte " + std::to_string(at) + ": " + what;
  };
  const auto is_entity = [&text](size_t place) {
    for (const std::string_view name : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (text.compare(place, name.size(), name) == 0) return true;
    }
    return false;
  };
  const auto name_end = [&text](size_t place) {
    while (place < text.size() && (std::isalnum(static_cast<unsigned char>(text[place])) != 0 ||
                                   text[place] == '-' || text[place] == ':')) {
      ++place;
    }
    return place;
  };
  std::vector<std::string> open;
  bool had_root = false;
  while (at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 && byte != '\n' && byte != '\t') return wrong("a control character");
    if (text[at] == '&' && !is_entity(at)) return wrong("a bare &");
    if (text[at] != '<') {
      if (open.empty() && text[at] != '\n') return wrong("text outside of all tags");
      ++at;
      continue;
    }
    const bool closes = text.compare(at, 2, "</") == 0;
    const size_t begin = at + (closes ? 2 : 1), end = name_end(begin);
    const std::string name = text.substr(begin, end - begin);
    if (name.empty()) return wrong("a bare <");
    at = end;
    if (closes) {
      if (open.empty() || open.back() != name) return wrong("</" + name + "> closes nothing");
      open.pop_back();
      if (text[at] != '>') return wrong("> is missing");
      ++at;
      continue;
    }
    if (open.empty() && had_root) return wrong("a second root");
    had_root = true;
    std::set<std::string> attributes;
    while (text[at] == ' ') {
      const size_t key_end = name_end(at + 1);
      if (!attributes.insert(text.substr(at + 1, key_end - at - 1)).second) {
        return wrong("an attribute twice");
      }
      if (text.compare(key_end, 2, "=\"") != 0) return wrong("no value");
      for (at = key_end + 2; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '<' || (text[at] == '&' && !is_entity(at))) return wrong("a bare sign");
      }
      ++at;
    }
    const bool is_empty = text.compare(at, 2, "/>") == 0;
    at += is_empty ? 1 : 0;
    if (at >= text.size() || text[at] != '>') return wrong("> is missing");
    ++at;
    if (!is_empty) open.push_back(name);
  }
  return open.empty() && had_root ? "" : wrong("a tag is open, or there is none");
}

}  // namespace hdetach
