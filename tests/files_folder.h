// A folder for the files of a test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

namespace hdetach {

class FilesFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "hdetach_files_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  std::filesystem::path folder_;
};

// What the call throws, with the folder's name taken away.
template <class Call>
std::string message(const std::filesystem::path& folder, Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    const std::string text = error.what(), prefix = folder.string() + "/";
    return text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : text;
  }
  return "no error";
}

}  // namespace hdetach
