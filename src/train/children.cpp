#include "train/children.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace hdetach::train {
namespace {

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666)) {
    if (number_ < 0) {
      throw std::runtime_error(fmt::format("cannot open {}: {}", path.string(), strerror(errno)));
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }
  int number() const { return number_; }
  bool is_regular() const {
    struct stat status;
    return fstat(number_, &status) == 0 && S_ISREG(status.st_mode);
  }

 private:
  int number_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment(int threads) {
  const std::string name = "OMP_NUM_THREADS=";
  std::vector<std::string> out = {name + std::to_string(threads)};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string(*entry).compare(0, name.size(), name) != 0) out.push_back(*entry);
  }
  return out;
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

void Children::start(size_t key, const ChildCommand& command) {
  const Descriptor input("/dev/null", O_RDONLY);
  const Descriptor log(command.log, O_RDWR | O_CREAT | O_APPEND);  // a pipe opens at once
  if (!log.is_regular()) {
    throw std::runtime_error(fmt::format("{}: not a file", command.log.string()));
  }
  const bool apart = !command.output.empty();
  if (apart) unlink(command.output.c_str());  // a link or a file of another's is not written into
  const Descriptor output(apart ? command.output : command.log,
                          O_WRONLY | O_CREAT | (apart ? O_EXCL : O_APPEND));
  std::vector<std::string> arguments = command.arguments, variables = environment(command.threads);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  const pid_t parent = getpid();

  // A signal in the child must not meet this process's handler: it would be lost.
  sigset_t all, before, none;
  sigfillset(&all);
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Other threads may hold locks: until execve the child only makes system calls.
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(128 + SIGTERM);  // it died before prctl
    for (const int number : {SIGINT, SIGTERM}) ::signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (dup2(input.number(), STDIN_FILENO) >= 0 && dup2(output.number(), STDOUT_FILENO) >= 0 &&
        dup2(log.number(), STDERR_FILENO) >= 0) {
      execve(argv[0], argv.data(), envp.data());
    }
    _exit(kCouldNotStart);
  }
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) throw std::runtime_error(fmt::format("cannot fork: {}", strerror(error)));
  keys_[child] = key;
}

std::vector<EndedChild> Children::reap() {
  std::vector<EndedChild> ended;
  for (auto it = keys_.begin(); it != keys_.end();) {
    int status = 0;
    const pid_t answer = waitpid(it->first, &status, WNOHANG);
    if (answer == 0 || (answer < 0 && errno == EINTR)) {
      ++it;
      continue;
    }
    ended.push_back({it->second, answer > 0 ? exit_code(status) : kCouldNotStart});
    it = keys_.erase(it);
  }
  return ended;
}

void Children::signal(int number) {
  for (const auto& [child, key] : keys_) kill(child, number);
}

Children::~Children() {
  signal(SIGTERM);
  for (const auto& [child, key] : keys_) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace hdetach::train
