// A folder of captions and features in a temporary place, and what reading it says.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "error_text.h"
#include "formats/safetensors.h"
#include "tasks/caption_set.h"
#include "tests/temporary_folder.h"

namespace hdetach {

class CaptionFolder : public FilesFolder {
 protected:
  void SetUp() override {
    options_.folder = folder_;
    options_.more_than = 0;
  }

  void remove(const std::string& name) const { std::filesystem::remove(folder_ / name); }

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
