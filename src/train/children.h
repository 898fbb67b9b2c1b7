// Child processes that work on runs: started with their output in a file, watched without waiting,
// told to save and end when this process is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hdetach::train {

struct ChildCommand {
  std::vector<std::string> arguments;  // the first is the program's path
  std::filesystem::path log;           // output and errors are added to its end
  std::filesystem::path output;        // a new file that gets the output instead; may be empty
  int threads = 1;                     // OMP_NUM_THREADS of the child
};

constexpr int kCouldNotStart = 127;  // exit code of a child whose program could not be run

struct EndedChild {
  size_t key;
  int exit_code;  // 128 + number for one that a signal ended
};

// Each child leads its own process group, so that a terminal's Ctrl-C reaches only this process,
// which passes it on once. The kernel sends a child SIGTERM when this process dies, however it
// dies.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();  // tells what still runs to end, and waits for it

  // `key` comes back with the child's end. Throws std::runtime_error when a file cannot be opened
  // or the system has no process left.
  void start(size_t key, const ChildCommand& command);

  std::vector<EndedChild> reap();  // those that ended since the last call; does not wait
  void signal(int number);         // to all that run
  size_t running() const { return keys_.size(); }

 private:
  std::map<pid_t, size_t> keys_;
};

}  // namespace hdetach::train
