#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace hdetach::cli {
namespace {

int lost = 0;  // errno of the first failure on standard output
bool told = false;

void keep_failure(const FILE* stream) {
  if (stream == stdout && lost == 0) lost = errno;
}

}  // namespace

void open_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) != -1) continue;
    // The lowest free number is the one that is closed. Nobody can write to a descriptor for
    // reading: output is lost and is told to be, whereas messages have nowhere to go.
    const int opened = ::open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != number) std::_Exit(1);
  }
}

void put(FILE* stream, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream) < text.size()) keep_failure(stream);
}

void flush(FILE* stream) {
  if (std::fflush(stream) != 0) keep_failure(stream);
}

void flush_output() {
  const std::string message = lost_output();
  if (!message.empty()) throw std::runtime_error(message);
}

std::string lost_output() {
  flush(stdout);
  if (lost == 0 || std::exchange(told, true)) return "";
  return fmt::format("cannot write to standard output: {}", std::strerror(lost));
}

}  // namespace hdetach::cli
