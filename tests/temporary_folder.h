// A folder that goes when its test does, and a fixture with files in one.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

namespace hdetach {

class TemporaryFolder {
 public:
  TemporaryFolder() : name_(testing::TempDir() + "hdetach_XXXXXX") {
    if (mkdtemp(name_.data()) == nullptr) throw std::runtime_error("cannot make " + name_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(name_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path() const { return name_; }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

 private:
  std::string name_;
};

class FilesFolder : public testing::Test {
 protected:
  std::filesystem::path put(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

 private:
  const TemporaryFolder temporary_;

 protected:
  std::filesystem::path folder_ = temporary_.path();
};

}  // namespace hdetach
