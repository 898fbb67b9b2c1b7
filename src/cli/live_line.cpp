#include "cli/live_line.h"

#include <fmt/core.h>
#include <unistd.h>

#include "cli/output.h"

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
  print(stream_, terminal_ ? "\r\033[K{}" : "{}\n", text);
  flush(stream_);
  painted_ = terminal_;
}

void LiveLine::clear() {
  if (painted_) print(stream_, "\r\033[K");
  painted_ = false;
  flush(stream_);
}

}  // namespace hdetach::cli
