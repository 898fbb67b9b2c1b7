#include "formats/files.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#ifdef HDETACH_WITH_ZLIB
#include <zlib.h>
#endif

#include "formats/descriptor.h"
#include "formats/replacement.h"

namespace hdetach::files {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = size_t{1} << 16;
constexpr std::string_view kGzipMagic = "\x1F\x8B";

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

std::string read_regular(const fs::path& path, size_t most) {
  Descriptor file(path, O_RDONLY | O_NONBLOCK);
  const struct stat status = file.status();
  if (!S_ISREG(status.st_mode)) fail(path, "not a file");
  if (static_cast<size_t>(status.st_size) > most) {
    fail(path, "larger than " + std::to_string(most >> 20) + " MiB");
  }
  std::string bytes;
  read_rest(file, most, bytes);
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

namespace {

void replace(const Place& place, const std::string& bytes) {
  Temporary file(place);
  file.write(bytes);
  file.put_in_place();
}

}  // namespace

void write_regular(const fs::path& path, const std::string& bytes) {
  const Place place(path);
  if (!place.replaceable) fail(path, "not a file");
  replace(place, bytes);
}

void write(const fs::path& path, const std::string& bytes) {
  const Place place(path);
  if (place.replaceable) return replace(place, bytes);
  const auto write_to = [&bytes](Descriptor file) {
    file.write(bytes);
    file.flush();
    file.close();
  };
  if (place.descriptor >= 0) {
    // Where it stands: whoever opened it may go on behind it.
    write_to(Descriptor::copy_of(place.descriptor, path));
  } else {
    write_to(Descriptor(path, O_WRONLY | O_TRUNC | O_NOCTTY));
  }
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw std::runtime_error("cannot make the folder " + path.string() + ": " + error.message());
  }
}

void append_line(const fs::path& path, const std::string& line) {
  Descriptor file(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY);
  if (!S_ISREG(file.status().st_mode)) fail(path, "not a file");
  const off_t before = file.size();
  char last = '\n';
  if (before > 0) {
    file.go_to(before - 1);
    file.read(&last, 1);
  }
  try {
    file.write((last == '\n' ? "" : "\n") + line + "\n");
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
  explicit Part(const Place& place)
      : Descriptor(part_of(place), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW),
        place(place),
        path(part_of(place)) {
    // Another process may have completed it between the two calls.
    if (lock() != Lock::kTaken || !has_its_name()) {
      fail(path, "another process is writing it; wait for that one");
    }
  }

  const Place place;
  const fs::path path;

 private:
  static fs::path part_of(const Place& place) {
    if (!place.replaceable) fail(place.path, "is not a regular file; name another");
    return place.path.string() + ".part";
  }
};

GrowingFile::GrowingFile(const fs::path& path) : part_(std::make_unique<Part>(Place(path))) {}

GrowingFile::~GrowingFile() = default;
GrowingFile::GrowingFile(GrowingFile&&) noexcept = default;

const fs::path& GrowingFile::part() const { return part_->path; }

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

// By a descriptor of its own: part_'s writes at the end, wherever it is.
void GrowingFile::replace(int64_t at, std::string_view bytes) {
  Descriptor file(part_->path, O_WRONLY | O_NOFOLLOW);
  file.go_to(at);
  file.write(bytes);
  file.close();
}

void GrowingFile::complete() {
  const Place& place = part_->place;
  if (place.before) part_->take_owner_and_mode(*place.before);
  part_->flush();
  if (::rename(part_->path.c_str(), place.path.c_str()) != 0) fail_system(place.path, "replace");
  flush_folder_of(place.path);
}

}  // namespace hdetach::files
