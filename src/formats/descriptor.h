// An open file, its calls checked: all throw std::runtime_error with the path and the system's
// reason.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>

namespace hdetach::files {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what);
// The reason comes from errno.
[[noreturn]] void fail_system(const std::filesystem::path& path, const std::string& action);

// Calls again for as long as a signal interrupts.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags);
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode, std::nothrow_t);
  // Another handle of what is open as `fd`; `path` is its name in errors.
  static Descriptor copy_of(int fd, const std::filesystem::path& path);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return fd_ >= 0; }  // of one that does not throw; errno tells why not

  // Up to `size` bytes; fewer only at the end of the file.
  size_t read(char* to, size_t size);
  void write(std::string_view bytes);
  void flush();
  void go_to(off_t offset);
  struct stat status() const;
  off_t size() const { return status().st_size; }

  enum class Lock { kTaken, kHeldByAnother, kImpossible };
  // Until this is closed, or the process ends however it ends. Does not wait.
  Lock lock();
  bool has_its_name() const;  // false once the file was renamed, removed or replaced
  // As far as the system lets us.
  void take_owner_and_mode(const struct stat& of);

  // False where it fails: this may be the way back from another failure.
  bool truncate(off_t size);
  // A full disk may show only here.
  void close();

 private:
  struct Opened {
    int fd;
  };
  Descriptor(const std::filesystem::path& path, Opened opened) : path_(path), fd_(opened.fd) {}

  const std::filesystem::path path_;
  int fd_;
};

void flush_folder_of(const std::filesystem::path& path);

}  // namespace hdetach::files
