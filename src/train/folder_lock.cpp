#include "train/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace hdetach::train {

FolderLock::FolderLock(const std::filesystem::path& file)
    : path_(file),
      file_(std::make_unique<files::Descriptor>(file, O_CREAT | O_RDWR | O_NONBLOCK | O_NOCTTY)) {
  if (!S_ISREG(file_->status().st_mode)) files::fail(file, "not a file");
  const auto lock = file_->lock();
  if (lock == files::Descriptor::Lock::kImpossible) {
    files::fail_system(file, "be locked; use a folder on a file system that has locks");
  }
  held_ = lock == files::Descriptor::Lock::kTaken;
}

void FolderLock::check_still_there() const {
  if (file_->has_its_name()) return;
  files::fail(path_,
              "was removed while this process worked here, so that another may do so too; nothing "
              "more is written. Once no process works here, the same command goes on");
}

}  // namespace hdetach::train
