// The lock of a folder: a file in it, locked as long as the object lives. The system lets go of it
// when the process ends, however it ends; a child that runs another program does not have it.
#pragma once

#include <filesystem>

namespace hdetach::train {

class FolderLock {
 public:
  // Makes the file where needed. Throws std::runtime_error where that cannot be done.
  explicit FolderLock(const std::filesystem::path& file);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

  bool is_held() const { return held_; }  // false: another process, or another object, has it

 private:
  int descriptor_;
  bool held_;
};

}  // namespace hdetach::train
