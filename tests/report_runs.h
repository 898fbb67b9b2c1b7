// Run folders as the program leaves them, written by hand.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/files.h"
#include "train/metrics.h"

namespace hdetach::test {

inline std::string metrics_line(int epoch, const std::string& accuracy,
                                const std::string& norm = "1.5") {
  return "{\"epoch\":" + std::to_string(epoch) + ",\"update\":" + std::to_string(100 * epoch) +
         ",\"train_loss\":0.5,\"valid_loss\":0.25,\"valid_accuracy\":" + accuracy +
         ",\"grad_norm_mean\":0.1,\"grad_norm_max\":" + norm +
         ",\"clipped\":0,\"skipped\":0,\"detach\":0,\"seconds\":" + std::to_string(2 * epoch) +
         ",\"updates_per_second\":50}";
}

inline std::string result_json(const std::string& status, const std::string& message,
                               std::optional<double> test_accuracy = std::nullopt) {
  train::RunResult result;
  result.status = status;
  result.message = message;
  result.test_measure = test_accuracy;
  return to_json(result);
}

// Without config.toml.
inline void write_run(const std::filesystem::path& folder, const std::vector<double>& accuracies,
                      const std::string& result = "") {
  std::filesystem::create_directories(folder);
  std::string metrics;
  for (size_t i = 0; i < accuracies.size(); ++i) {
    metrics += metrics_line(static_cast<int>(i + 1), std::to_string(accuracies[i])) + "\n";
  }
  files::write(folder / "metrics.jsonl", metrics);
  if (!result.empty()) files::write(folder / "result.json", result);
}

inline void write_copy_run(const std::filesystem::path& folder,
                           const std::vector<double>& accuracies = {0.25, 0.5},
                           const std::string& config = "task = \"copy\"\nhidden = 64\n") {
  write_run(folder, accuracies);
  files::write(folder / "config.toml", config);
}

}  // namespace hdetach::test
