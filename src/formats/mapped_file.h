// A whole file as memory, read-only: the system fetches what is looked at, and nothing is copied.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace hdetach::files {

class MappedFile {
 public:
  // Throws std::runtime_error with the path and the reason. The file must not become shorter while
  // it is mapped: the system would end the process.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const char* data() const { return data_; }  // null when the file is empty
  size_t size() const { return size_; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hdetach::files
