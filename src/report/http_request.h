// What a browser asks, as far as a page on this machine needs it. Any bytes are safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hdetach::report {

constexpr size_t kLongestRequest = 16384;

struct HttpRequest {
  enum class State { kIncomplete, kBad, kComplete };
  State state = State::kIncomplete;
  std::string method;  // "GET"
  std::string path;    // "/data.json", without what follows a '?'
  std::string host;    // of the header; empty without
};

// `bytes`: what has come so far. A request is complete with its headers; bodies are not read.
HttpRequest parse_request(std::string_view bytes);

// Whether a Host header names this machine: localhost or a loopback address, with any port. Other
// names may be a foreign site's that its owner lets lead here (DNS rebinding).
bool is_local_host(std::string_view host);

}  // namespace hdetach::report
