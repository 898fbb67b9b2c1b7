#include "cli/trained_run.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <stdexcept>

#include "train/engine.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/run_history.h"

namespace hdetach::cli {

train::Config read_trained_run(const std::string& run) {
  const auto config = train::read_config(run);
  if (!config) {
    throw std::runtime_error(fmt::format("{} holds no run: there is no config.toml in it", run));
  }
  if (!std::filesystem::exists(std::filesystem::path(run) / "best.safetensors")) {
    throw std::runtime_error(fmt::format(
        "{} has no best.safetensors: none of its epochs is complete, or the file was not copied",
        run));
  }
  train::check_files(run);
  return *config;
}

void choose_device(const std::string& asked, train::Config& config) {
  if (asked.empty()) {
    if (!train::cuda_problem().empty()) config.device = "cpu";
    return;
  }
  config.device = asked;
  try {
    train::check_device(config);
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
}

}  // namespace hdetach::cli
