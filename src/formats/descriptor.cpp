#include "formats/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <utility>

namespace hdetach::files {

namespace fs = std::filesystem;

void fail(const fs::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what);
}

void fail_system(const fs::path& path, const std::string& action) {
  fail(path, "cannot " + action + ": " + std::strerror(errno));
}

Descriptor::Descriptor(const fs::path& path, int flags)
    : Descriptor(path, flags, 0666, std::nothrow) {
  if (fd_ < 0) fail_system(path, "open");
}

Descriptor::Descriptor(const fs::path& path, int flags, mode_t mode, std::nothrow_t)
    : path_(path), fd_(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); })) {}

Descriptor Descriptor::copy_of(int fd, const fs::path& path) {
  const int copy = retry([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); });
  if (copy < 0) fail_system(path, "open");
  return Descriptor(path, Opened{copy});
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

size_t Descriptor::read(char* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = retry([&] { return ::read(fd_, to + done, size - done); });
    if (n < 0) fail_system(path_, "read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void Descriptor::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return ::write(fd_, bytes.data(), bytes.size()); });
    if (n < 0) fail_system(path_, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void Descriptor::flush() {
  // Devices, pipes and the folders of some file systems cannot be flushed and answer EINVAL.
  if (retry([&] { return ::fsync(fd_); }) != 0 && errno != EINVAL) fail_system(path_, "flush");
}

void Descriptor::go_to(off_t offset) {
  if (::lseek(fd_, offset, SEEK_SET) < 0) fail_system(path_, "seek");
}

struct stat Descriptor::status() const {
  struct stat status;
  if (::fstat(fd_, &status) != 0) fail_system(path_, "examine");
  return status;
}

Descriptor::Lock Descriptor::lock() {
  if (retry([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0) return Lock::kTaken;
  return errno == EWOULDBLOCK ? Lock::kHeldByAnother : Lock::kImpossible;
}

bool Descriptor::has_its_name() const {
  struct stat named;
  if (::lstat(path_.c_str(), &named) != 0) return false;
  const struct stat own = status();
  return named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

void Descriptor::take_owner_and_mode(const struct stat& of) {
  // Only root gives files away; others may still pass them to a group that they are in. Some file
  // systems know neither. A change of owner clears bits of the mode, so that comes last.
  if (::fchown(fd_, of.st_uid, of.st_gid) != 0 &&
      ::fchown(fd_, static_cast<uid_t>(-1), of.st_gid) != 0) {
    // The file is ours then.
  }
  ::fchmod(fd_, of.st_mode & 0777);
}

bool Descriptor::truncate(off_t size) {
  return retry([&] { return ::ftruncate(fd_, size); }) == 0;
}

void Descriptor::close() {
  // After EINTR the descriptor is closed all the same.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_system(path_, "close");
}

void flush_folder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  Descriptor(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY).flush();
}

}  // namespace hdetach::files
