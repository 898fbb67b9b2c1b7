// Whole files, in and out.
#pragma once

#include <filesystem>
#include <string>

namespace hdetach::files {

// Throws std::runtime_error with the path and the system's reason.
std::string read(const std::filesystem::path& path);

// read(), unpacked where the file is gzipped (told by its first bytes, not by its name). Throws on
// a damaged stream, on more than `most` bytes of content, and where the build lacks zlib.
std::string read_gzip(const std::filesystem::path& path, size_t most);

// Replaces the file as a whole: a temporary file beside it is written, flushed to the disk and
// renamed, and the folder is flushed. A reader sees the old or the new content, never a part.
void write(const std::filesystem::path& path, const std::string& bytes);

// Adds a line to the end of the file and flushes it to the disk.
void append_line(const std::filesystem::path& path, const std::string& line);

}  // namespace hdetach::files
