#include "report/http_request.h"

#include <algorithm>

namespace hdetach::report {
namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "GET /path HTTP/1.1"
bool parse_first_line(std::string_view line, HttpRequest& request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  request.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  request.path = target.substr(0, target.find('?'));
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  return !request.method.empty() && request.path[0] == '/' &&
         std::all_of(request.method.begin(), request.method.end(), is_capital) &&
         target.find(' ') == std::string_view::npos;
}

}  // namespace

HttpRequest parse_request(std::string_view bytes) {
  HttpRequest request;
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() > kLongestRequest) request.state = HttpRequest::State::kBad;
    return request;
  }
  request.state = HttpRequest::State::kBad;
  if (end > kLongestRequest) return request;
  std::string_view left = bytes.substr(0, end + 2);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  for (bool first = true; !left.empty(); first = false) {
    const size_t line_end = left.find("\r\n");
    const std::string_view line = left.substr(0, line_end);
    left.remove_prefix(line_end + 2);
    if (std::any_of(line.begin(), line.end(), [&](char c) { return c != '\t' && control(c); })) {
      return request;
    }
    if (first) {
      if (!parse_first_line(line, request)) return request;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return request;
    if (lower_case(line.substr(0, colon)) != "host") continue;
    if (!request.host.empty()) return request;  // two hosts: which one counts differs by program
    request.host = lower_case(trimmed(line.substr(colon + 1)));
  }
  request.state = HttpRequest::State::kComplete;
  return request;
}

bool is_local_host(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.back() != ']') {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 ||
        port.find_first_not_of("0123456789") != std::string_view::npos) {
      return false;
    }
    host = host.substr(0, colon);
  }
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace hdetach::report
