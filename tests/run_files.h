// Whether two run folders hold the same run: everything but the times.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "formats/files.h"
#include "formats/safetensors.h"

inline std::string metrics_without_times(const std::filesystem::path& run) {
  std::istringstream lines(hdetach::files::read(run / "metrics.jsonl"));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    auto metrics = nlohmann::json::parse(line);
    metrics.erase("seconds");
    metrics.erase("updates_per_second");
    kept += metrics.dump() + "\n";
  }
  return kept;
}

inline nlohmann::json result_without_times(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / "result.json")) return nullptr;
  auto result = nlohmann::json::parse(hdetach::files::read(run / "result.json"));
  result.erase("seconds");
  result.erase("checksum");
  result["notes"].erase("metrics");  // whose lines have times
  return result;
}

inline std::string words_of(const std::filesystem::path& run) {  // of captions
  const auto file = run / "words.txt";
  return std::filesystem::exists(file) ? hdetach::files::read(file) : "";
}

// As earlier versions wrote weights and states: without a checksum and whatever else is noted.
inline std::string without_notes(const std::string& bytes) {
  const auto file = hdetach::safetensors::parse(bytes, "noted");
  std::vector<hdetach::safetensors::View> views;
  for (const auto& each : file.arrays) {
    views.push_back({each.name, each.dtype, each.shape, each.data});
  }
  return hdetach::safetensors::serialize(views, {});
}

inline void expect_equal_arrays(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto before = hdetach::safetensors::parse(hdetach::files::read(a), a.string());
  const auto after = hdetach::safetensors::parse(hdetach::files::read(b), b.string());
  ASSERT_EQ(before.arrays.size(), after.arrays.size()) << b;
  for (const auto& array : before.arrays) {
    const auto* other = after.find(array.name);
    ASSERT_NE(other, nullptr) << b << ": " << array.name;
    ASSERT_EQ(array.size, other->size) << b << ": " << array.name;
    // The last two counters are times.
    const size_t times = array.name == "progress" ? 2 * sizeof(double) : 0;
    EXPECT_EQ(std::memcmp(array.data, other->data, array.size - times), 0)
        << b << ": " << array.name;
  }
}

// Runs that were trained alike and ended alike, whatever else their settings ask for: the notes
// hold the settings.
inline void expect_equal_training(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto without_notes = [](nlohmann::json result) {
    if (result.is_object()) result.erase("notes");
    return result;
  };
  EXPECT_EQ(metrics_without_times(a), metrics_without_times(b)) << b;
  EXPECT_EQ(without_notes(result_without_times(a)), without_notes(result_without_times(b))) << b;
  EXPECT_EQ(words_of(a), words_of(b)) << b;
  for (const char* file : {"best.safetensors", "last.safetensors", "state.safetensors"}) {
    expect_equal_arrays(a / file, b / file);
  }
}

inline void expect_equal_runs(const std::filesystem::path& a, const std::filesystem::path& b) {
  using hdetach::files::read;
  expect_equal_training(a, b);
  EXPECT_EQ(result_without_times(a), result_without_times(b)) << b;
  EXPECT_TRUE(read(a / "best.safetensors") == read(b / "best.safetensors")) << b;
  EXPECT_TRUE(read(a / "last.safetensors") == read(b / "last.safetensors")) << b;
}
