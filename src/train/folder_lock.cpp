#include "train/folder_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace hdetach::train {

FolderLock::FolderLock(const std::filesystem::path& file)
    : descriptor_(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) {
    throw std::runtime_error(fmt::format("{}: {}", file.string(), std::strerror(errno)));
  }
  held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), held_(other.held_) {}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace hdetach::train
