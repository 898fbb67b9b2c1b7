// How a file takes the place of another as a whole, and what must not be replaced so: the entry of
// a symbolic link (the file that it names is), a device, a pipe.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "formats/descriptor.h"

namespace hdetach::files {

// Where the bytes of a file go that the user names.
struct Place {
  explicit Place(const std::filesystem::path& named);  // throws for a folder

  std::filesystem::path path;         // the links behind the name followed, to a file or to nothing
  bool replaceable = true;            // false: it is to be opened and written to, by its own name
  int descriptor = -1;                // of this process, where the name means one: /dev/stdout
  std::optional<struct stat> before;  // of the file that is replaced, where there is one
};

// A new file beside the place. It has a name that no other process writes to; what a killed process
// left under such a name is removed, so that there are never more of them than writers at one time.
// Who holds the lock of a file of such a name may rename or remove it, nobody else.
class Temporary {
 public:
  explicit Temporary(const Place& place);
  ~Temporary();  // removes it where it did not get into its place
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void write(std::string_view bytes) { file_->write(bytes); }
  void put_in_place();  // flushed to the disk; the last call

 private:
  enum class Answer { kTaken, kBusy, kAgain };
  Answer take();

  const Place& place_;
  std::filesystem::path path_;
  std::optional<Descriptor> file_;
};

}  // namespace hdetach::files
