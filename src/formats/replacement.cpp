#include "formats/replacement.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string>
#include <system_error>

namespace hdetach::files {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the system has it
constexpr int kMostTries = 1000;
constexpr char kSuffix[] = ".hdetach-tmp";

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// What a process left that was killed. False where a process is still writing it, or where it is
// something else of that name.
bool remove_abandoned(const fs::path& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  std::optional<Descriptor> file;
  for (const int access : {O_RDWR, O_RDONLY}) {  // some network file systems lock only the former
    file.emplace(path, access | kFlags, 0, std::nothrow);
    if (file->is_open()) break;
    if (errno == ENOENT) return true;
  }
  if (!file->is_open() || !S_ISREG(file->status().st_mode)) return false;
  if (file->lock() != Descriptor::Lock::kTaken) return false;
  return !file->has_its_name() || ::unlink(path.c_str()) == 0;
}

// The N of /proc/self/fd/N and /dev/fd/N, where /dev/stdout leads; -1 of any other name.
int own_descriptor(const fs::path& path) {
  const std::string folder = path.parent_path(), name = path.filename();
  const bool is_own = folder == "/dev/fd" || folder == "/proc/self/fd" ||
                      folder == "/proc/thread-self/fd" ||
                      folder == "/proc/" + std::to_string(::getpid()) + "/fd";
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return is_own && error == std::errc() && end == name.data() + name.size() ? number : -1;
}

}  // namespace

Place::Place(const fs::path& named) : path(named) {
  struct stat found, entry;
  const bool exists = ::stat(named.c_str(), &found) == 0;
  if (!exists && errno != ENOENT) fail_system(named, "open");
  bool has_entry = ::lstat(path.c_str(), &entry) == 0;
  for (int links = 0; has_entry && S_ISLNK(entry.st_mode); ++links) {
    descriptor = own_descriptor(path);
    if (descriptor >= 0) {
      replaceable = false;
      return;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    if (error || links == kMostLinks) {
      errno = error ? error.value() : ELOOP;
      fail_system(named, "open");
    }
    path = path.parent_path() / target;
    has_entry = ::lstat(path.c_str(), &entry) == 0;
  }
  if (!exists) return;
  if (S_ISDIR(found.st_mode)) {
    errno = EISDIR;
    fail_system(named, "replace");
  }
  // A link of /proc may lead to a file that has no name any more.
  replaceable = S_ISREG(found.st_mode) && has_entry && same_file(found, entry);
  if (replaceable) before = found;
}

Temporary::Temporary(const Place& place) : place_(place) {
  for (int tries = 0, number = 0; tries < kMostTries; ++tries) {
    path_ = place.path;
    path_ += kSuffix;
    if (number > 0) path_ += "-" + std::to_string(number);
    const Answer answer = take();
    if (answer == Answer::kTaken) return;
    number += answer == Answer::kBusy;
  }
  fail(place.path, "cannot write: too many temporary files beside it; remove those named *" +
                       std::string(kSuffix) + "*");
}

Temporary::Answer Temporary::take() {
  // What replaces a private file is private from its first byte on.
  const mode_t mode = place_.before ? 0600 : 0666;
  file_.emplace(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode, std::nothrow);
  if (!file_->is_open()) {
    if (errno != EEXIST) fail_system(place_.path, "write");
    return remove_abandoned(path_) ? Answer::kAgain : Answer::kBusy;
  }
  // Until it was locked, another process may have taken it for abandoned.
  if (file_->lock() == Descriptor::Lock::kHeldByAnother) return Answer::kAgain;
  return file_->has_its_name() ? Answer::kTaken : Answer::kAgain;
}

Temporary::~Temporary() {
  if (file_) ::unlink(path_.c_str());
}

void Temporary::put_in_place() {
  if (place_.before) file_->take_owner_and_mode(*place_.before);
  file_->flush();
  // Still open, and with that locked: its name is ours.
  if (::rename(path_.c_str(), place_.path.c_str()) != 0) fail_system(place_.path, "replace");
  file_.reset();
  flush_folder_of(place_.path);
}

}  // namespace hdetach::files
