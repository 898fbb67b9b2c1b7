// Whole files, in and out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace hdetach::files {

// Throws std::runtime_error with the path and the system's reason.
std::string read(const std::filesystem::path& path);

// The same of a regular file of at most `most` bytes; anything else is refused. For folders that
// others have had: opening a pipe would wait for ever.
std::string read_regular(const std::filesystem::path& path,
                         size_t most = std::numeric_limits<size_t>::max());

// read(), unpacked where the file is gzipped (told by its first bytes, not by its name). Throws on
// a damaged stream, on more than `most` bytes of content, and where the build lacks zlib.
std::string read_gzip(const std::filesystem::path& path, size_t most);

// Replaces the file as a whole: a temporary file beside it is written, flushed to the disk and
// renamed, and the folder is flushed. A reader sees the old or the new content, never a part. Of a
// symbolic link the file that it names is replaced, or made; the permissions stay. A device or a
// pipe is written to, and so is what is open already, as /dev/stdout. Several processes may write
// one file: the content of one of them stays.
void write(const std::filesystem::path& path, const std::string& bytes);

// write() into a folder that others have had: only a regular file, or nothing, is replaced. What
// else has the name is refused.
void write_regular(const std::filesystem::path& path, const std::string& bytes);

// And the folders above it, where they are not there.
void make_folder(const std::filesystem::path& path);

// Adds a line to the end of a regular file, behind the half line that a full disk may have left
// there, and flushes it to the disk.
void append_line(const std::filesystem::path& path, const std::string& line);

// A file too large for memory, which gets its name only when it is complete: until then it grows at
// its end under the name PATH.part, where another process finds it again; of a symbolic link, PATH
// is the file that it names. The system keeps what was appended when the process is killed. All
// throw as read() does, and so does a file that another process has open here.
class GrowingFile {
 public:
  explicit GrowingFile(const std::filesystem::path& path);
  ~GrowingFile();
  GrowingFile(GrowingFile&& other) noexcept;

  const std::filesystem::path& part() const;  // its name for now
  int64_t size() const;
  std::string start(size_t most) const;  // its first bytes, fewer where it is shorter
  void cut(int64_t size);
  void append(const std::string& bytes);
  void replace(int64_t at, std::string_view bytes);  // some that are there
  void complete();  // flushes it to the disk and renames it; the last call

 private:
  class Part;
  std::unique_ptr<Part> part_;
};

}  // namespace hdetach::files
