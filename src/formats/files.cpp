#include "formats/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#ifdef HDETACH_WITH_ZLIB
#include <zlib.h>
#endif

namespace hdetach::files {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = size_t{1} << 16;
constexpr std::string_view kGzipMagic = "\x1F\x8B";

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what);
}

// The reason comes from errno.
[[noreturn]] void fail_system(const fs::path& path, const std::string& action) {
  fail(path, "cannot " + action + ": " + std::strerror(errno));
}

// Calls again for as long as a signal interrupts.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

// Not local to this file, since GrowingFile::Part, which is not, is one.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), fd_(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); })) {
    if (fd_ < 0) fail_system(path, "open");
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // Up to `size` bytes; fewer only at the end of the file.
  size_t read(char* to, size_t size) {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = retry([&] { return ::read(fd_, to + done, size - done); });
      if (n < 0) fail_system(path_, "read");
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = retry([&] { return ::write(fd_, bytes.data(), bytes.size()); });
      if (n < 0) fail_system(path_, "write");
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  void flush() {
    // Some file systems cannot flush a folder and answer EINVAL.
    if (retry([&] { return ::fsync(fd_); }) != 0 && errno != EINVAL) fail_system(path_, "flush");
  }

  off_t size() const {
    struct stat status;
    if (::fstat(fd_, &status) != 0) fail_system(path_, "examine");
    return status.st_size;
  }

  void go_to(off_t offset) {
    if (::lseek(fd_, offset, SEEK_SET) < 0) fail_system(path_, "seek");
  }

  // Until this is closed, or the process ends however it ends.
  bool lock() { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

  // False where it fails: this may be the way back from another failure.
  bool truncate(off_t size) {
    return retry([&] { return ::ftruncate(fd_, size); }) == 0;
  }

  // A full disk may show only here. After EINTR the descriptor is closed all the same.
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_system(path_, "close");
  }

 private:
  const fs::path path_;
  int fd_;
};

namespace {

// Adds what is left of `file` to `bytes`, until they are more than `most`.
void read_rest(Descriptor& file, size_t most, std::string& bytes) {
  size_t used = bytes.size();
  while (used <= most) {
    const size_t room = std::max(kChunk, used);  // grows by doubling
    bytes.resize(used + room);
    const size_t n = file.read(bytes.data() + used, room);
    used += n;
    if (n < room) break;
  }
  bytes.resize(used);
}

void flush_folder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  Descriptor(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY).flush();
}

#ifdef HDETACH_WITH_ZLIB
// Reads a gzip file chunk by chunk: memory is bounded by what it unpacks to.
class Unpacker {
 public:
  Unpacker(Descriptor& file, const fs::path& path, std::string start)
      : file_(file), path_(path), input_(std::move(start)), taken_(input_.size()) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) fail(path, "zlib cannot start");
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(input_.size());
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::string unpack(size_t most) {
    std::string bytes;
    size_t used = 0;
    do {  // gzip files may be joined: each part is unpacked after the other
      inflateReset(&stream_);
      for (int state = Z_OK; state != Z_STREAM_END;) {
        if (!fill()) fail_at("the gzip file ends early; fetch it again");
        if (bytes.size() - used < kChunk) bytes.resize(std::max(2 * used, used + kChunk));
        stream_.next_out = reinterpret_cast<Bytef*>(bytes.data() + used);
        stream_.avail_out = kChunk;
        state = inflate(&stream_, Z_NO_FLUSH);
        used += kChunk - stream_.avail_out;
        // Z_BUF_ERROR only asks for more input or more room.
        if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
          fail_at("the gzip file is damaged (" +
                  std::string(stream_.msg != nullptr ? stream_.msg : "zlib error") +
                  "); fetch it again");
        }
        if (used > most) fail(path_, "unpacks to more than " + std::to_string(most) + " bytes");
      }
    } while (fill());
    bytes.resize(used);
    return bytes;
  }

 private:
  // False at the end of the file.
  bool fill() {
    if (stream_.avail_in > 0) return true;
    input_.resize(kChunk);
    const size_t n = file_.read(input_.data(), kChunk);
    taken_ += n;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  [[noreturn]] void fail_at(const std::string& what) const {
    fail(path_, "byte " + std::to_string(taken_ - stream_.avail_in) + ": " + what);
  }

  Descriptor& file_;
  const fs::path& path_;
  std::string input_;
  size_t taken_;  // bytes of the file that input_ has held
  z_stream stream_{};
};
#endif

}  // namespace

std::string read(const fs::path& path) {
  Descriptor file(path, O_RDONLY);
  std::string bytes;
  read_rest(file, std::numeric_limits<size_t>::max(), bytes);
  return bytes;
}

std::string read_gzip(const fs::path& path, size_t most) {
  Descriptor file(path, O_RDONLY);
  std::string bytes(kGzipMagic.size(), '\0');
  bytes.resize(file.read(bytes.data(), bytes.size()));
  if (bytes == kGzipMagic) {
#ifdef HDETACH_WITH_ZLIB
    return Unpacker(file, path, std::move(bytes)).unpack(most);
#else
    fail(path,
         "the file is gzipped and this build has no zlib; run gunzip on it, or install "
         "zlib1g-dev and build again");
#endif
  }
  read_rest(file, most, bytes);
  if (bytes.size() > most) fail(path, "has more than " + std::to_string(most) + " bytes");
  return bytes;
}

void write(const fs::path& path, const std::string& bytes) {
  fs::path temporary = path;
  temporary += ".tmp";
  Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  try {
    file.write(bytes);
    file.flush();
    file.close();
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_system(path, "replace");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  flush_folder_of(path);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw std::runtime_error("cannot make the folder " + path.string() + ": " + error.message());
  }
}

void append_line(const fs::path& path, const std::string& line) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND);
  const off_t before = file.size();
  try {
    file.write(line + "\n");
  } catch (...) {
    file.truncate(before);  // half a line would spoil the next one
    throw;
  }
  file.flush();
  file.close();
  if (before == 0) flush_folder_of(path);
}

class GrowingFile::Part : public Descriptor {
 public:
  explicit Part(fs::path path)
      : Descriptor(path, O_RDWR | O_CREAT | O_APPEND), path(std::move(path)) {
    if (!lock()) fail(this->path, "another process is writing it; wait for that one");
  }
  const fs::path path;
};

GrowingFile::GrowingFile(const fs::path& path)
    : path_(path), part_(std::make_unique<Part>(path.string() + ".part")) {}

GrowingFile::~GrowingFile() = default;
GrowingFile::GrowingFile(GrowingFile&&) noexcept = default;

int64_t GrowingFile::size() const { return part_->size(); }

std::string GrowingFile::start(size_t most) const {
  std::string bytes(most, '\0');
  part_->go_to(0);
  bytes.resize(part_->read(bytes.data(), most));
  return bytes;
}

void GrowingFile::cut(int64_t size) {
  if (!part_->truncate(size)) fail_system(part_->path, "shorten");
}

void GrowingFile::append(const std::string& bytes) { part_->write(bytes); }

void GrowingFile::complete() {
  part_->flush();
  if (::rename(part_->path.c_str(), path_.c_str()) != 0) fail_system(path_, "replace");
  flush_folder_of(path_);
}

}  // namespace hdetach::files
