#include "cli/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace hdetach::cli {
namespace {

[[noreturn]] void fail(const std::string& program, int error) {
  throw std::runtime_error("cannot run " + program + ": " + std::strerror(error));
}

class Pipe {
 public:
  explicit Pipe(const std::string& program) {
    if (::pipe2(ends_, O_CLOEXEC) != 0) fail(program, errno);
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_read() { close(ends_[0]); }
  void close_write() { close(ends_[1]); }

  // All that comes until every writer has closed.
  std::string drain() {
    std::string bytes;
    char chunk[4096];
    for (;;) {
      const ssize_t n = ::read(ends_[0], chunk, sizeof(chunk));
      if (n > 0) bytes.append(chunk, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) return bytes;
    }
  }

 private:
  static void close(int& end) {
    if (end >= 0) ::close(std::exchange(end, -1));
  }

  int ends_[2];
};

// After fork: only calls that are safe while another thread of the parent may hold any lock.
[[noreturn]] void become(char* const* arguments, const char* folder, int output, int failure) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
      ::dup2(output, STDERR_FILENO) >= 0 && ::chdir(folder) == 0) {
    ::execvp(arguments[0], arguments);
  }
  const int error = errno;
  const ssize_t written = ::write(failure, &error, sizeof(error));
  ::_exit(written == sizeof(error) ? 127 : 126);
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));  // execvp does not write to them
  }
  pointers.push_back(nullptr);

  Pipe output(arguments[0]), failure(arguments[0]);  // exec closes failure: then it is empty
  const pid_t child = ::fork();
  if (child < 0) fail(arguments[0], errno);
  if (child == 0) {
    become(pointers.data(), folder.c_str(), output.write_end(), failure.write_end());
  }
  output.close_write();
  failure.close_write();
  const std::string error = failure.drain();
  ChildResult result{0, output.drain()};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(arguments[0], errno);
  }
  if (error.size() == sizeof(int)) {
    int number = 0;
    std::memcpy(&number, error.data(), sizeof(number));
    fail(arguments[0], number);
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace hdetach::cli
