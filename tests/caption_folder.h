// A folder of captions and features in a temporary place, and what reading it says.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "error_text.h"
#include "formats/safetensors.h"
#include "tasks/caption_set.h"

namespace hdetach {

class CaptionFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "hdetach_captions_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    options_.folder = name;
    options_.more_than = 0;
  }
  void TearDown() override { std::filesystem::remove_all(options_.folder); }

  void put(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = std::filesystem::path(options_.folder) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  void remove(const std::string& name) const {
    std::filesystem::remove(std::filesystem::path(options_.folder) / name);
  }

  template <class Number>
  static std::string bytes_of(const std::vector<Number>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
  }

  void put_tensors(const std::string& name, const std::string& dtype,
                   const std::vector<int64_t>& shape, const std::string& features,
                   const std::vector<int64_t>& ids) const {
    put(name,
        safetensors::serialize({{"features", dtype, shape, features.data()},
                                {"ids", "I64", {static_cast<int64_t>(ids.size())}, ids.data()}},
                               {}));
  }

  tasks::CaptionData read() const { return tasks::read_caption_data(options_); }

  static std::vector<float> features(const tasks::CaptionData& data, int64_t row) {
    std::vector<float> values(data.features->positions() * data.features->channels(), -1);
    data.features->read(row, values.data());
    return values;
  }

  // What reading throws, each mention of the folder replaced by DIR.
  std::string message() const {
    return test::error_text(options_.folder, [&] { read(); });
  }

  tasks::CaptionDataOptions options_;
};

}  // namespace hdetach
