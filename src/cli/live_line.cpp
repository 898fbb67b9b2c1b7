#include "cli/live_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace hdetach::cli {
namespace {

constexpr std::chrono::milliseconds kRepaint(100), kLine(5000);

}  // namespace

LiveLine::LiveLine(FILE* stream, Elsewhere elsewhere)
    : stream_(stream),
      terminal_(isatty(fileno(stream)) == 1),
      silent_(!terminal_ && elsewhere == Elsewhere::kSilent),
      shown_(std::chrono::steady_clock::now()) {}

bool LiveLine::due() const {
  return !silent_ && std::chrono::steady_clock::now() - shown_ >= (terminal_ ? kRepaint : kLine);
}

void LiveLine::show(const std::string& text) {
  if (!due()) return;
  shown_ = std::chrono::steady_clock::now();
  fmt::print(stream_, terminal_ ? "\r\033[K{}" : "{}\n", text);
  std::fflush(stream_);
  painted_ = terminal_;
}

void LiveLine::clear() {
  if (painted_) fmt::print(stream_, "\r\033[K");
  painted_ = false;
  std::fflush(stream_);
}

std::string duration(double seconds) {
  const int64_t s = std::llround(std::clamp(seconds, 0.0, 1e12));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
  return fmt::format("{} d {:02} h", s / 86400, s / 3600 % 24);
}

}  // namespace hdetach::cli
