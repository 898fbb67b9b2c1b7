// The lock of a folder: a file in it, locked as long as the object lives. The system lets go of it
// when the process ends, however it ends; a child that runs another program does not have it.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/descriptor.h"

namespace hdetach::train {

class FolderLock {
 public:
  // Makes the file where needed. Throws std::runtime_error where that cannot be done.
  explicit FolderLock(const std::filesystem::path& file);

  bool is_held() const { return held_; }  // false: another process, or another object, has it
  // Throws std::runtime_error where the file was removed: then another process may hold the lock of
  // a new one.
  void check_still_there() const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<files::Descriptor> file_;
  bool held_;
};

}  // namespace hdetach::train
