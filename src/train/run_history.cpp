#include "train/run_history.h"

#include <fmt/core.h>

#include <sstream>
#include <stdexcept>

#include "formats/files.h"
#include "formats/json_object.h"
#include "formats/mapped_file.h"
#include "train/metrics.h"
#include "train/seal.h"

namespace hdetach::train {
namespace {

namespace fs = std::filesystem;

constexpr const char *kEpochNote = "epoch", *kMetricsNote = "metrics", *kXraysNote = "xrays";

[[noreturn]] void fail(const std::string& problem) {
  throw std::runtime_error(
      fmt::format("{}; restore the file from a copy, or train again into another folder", problem));
}

KeptLines metrics_until(const fs::path& run, int64_t epochs, bool saved) {
  const fs::path path = run / kMetricsFile;
  KeptLines kept;
  if (!fs::exists(path)) {
    if (epochs == 0) return kept;
    fail(fmt::format("{} is missing, but the run is at epoch {}", path.string(), epochs));
  }
  std::istringstream lines(files::read(path));
  std::string line;
  int64_t count = 0;
  while (count < epochs && std::getline(lines, line)) {
    const std::string place = fmt::format("{}:{}", path.string(), ++count);
    const int64_t epoch = JsonObject(line, place).whole("epoch");
    if (epoch != count) {
      fail(fmt::format("{}: this is epoch {}, where {} should stand", place, epoch, count));
    }
    kept.add(line);
  }
  if (count < epochs) {
    fail(fmt::format("{} has {} lines, but the run is at epoch {}", path.string(), count, epochs));
  }
  // The first epoch's line comes before the first state, a second one does not.
  if (!saved && std::getline(lines, line) && std::getline(lines, line)) {
    fail(fmt::format("{} is missing, but metrics.jsonl has epochs", (run / kStateFile).string()));
  }
  return kept;
}

KeptLines xrays_until(const fs::path& run, int64_t epochs) {
  KeptLines kept;
  for (const XrayLine& each : xray_lines(run)) {
    if (each.record.epoch.value_or(epochs + 1) <= epochs) kept.add(each.text);
  }
  return kept;
}

}  // namespace

std::vector<XrayLine> xray_lines(const fs::path& run) {
  std::vector<XrayLine> out;
  if (!fs::exists(run / kXraysFile)) return out;
  std::istringstream lines(files::read(run / kXraysFile));
  for (std::string line; std::getline(lines, line);) {
    const std::string place = fmt::format("{}:{}", (run / kXraysFile).string(), out.size() + 1);
    try {
      out.push_back({line, xray::parse_record(line, place)});
    } catch (const std::runtime_error&) {
      if (lines.peek() == std::char_traits<char>::eof()) break;
      throw;
    }
  }
  return out;
}

History read_history(const fs::path& run, int64_t epochs, bool saved) {
  return {metrics_until(run, epochs, saved), xrays_until(run, epochs)};
}

safetensors::Metadata history_notes(const Checksum& metrics, const Checksum& xrays,
                                    int64_t epochs) {
  return {{kEpochNote, std::to_string(epochs)},
          {kMetricsNote, metrics.text()},
          {kXraysNote, xrays.text()}};
}

void check_history(const History& history, const safetensors::Metadata& notes,
                   const fs::path& run) {
  const auto check = [&](const char* note, const KeptLines& lines, const char* file) {
    const auto found = notes.find(note);
    if (found == notes.end() || found->second == lines.checksum.text()) return;
    fail(fmt::format("{} is damaged: up to epoch {} it is not what the state was saved with",
                     (run / file).string(), notes.at(kEpochNote)));
  };
  check(kMetricsNote, history.metrics, kMetricsFile);
  check(kXraysNote, history.xrays, kXraysFile);
}

void check_lines(const fs::path& run) {
  const fs::path state = run / kStateFile, result = run / kResultFile;
  if (fs::exists(state)) {
    const files::MappedFile file(state);
    const auto notes = safetensors::read_header(file.bytes(), state.string()).metadata;
    const auto epoch = notes.find(kEpochNote);
    if (epoch == notes.end()) return;  // of an earlier version
    check_history(read_history(run, std::strtoll(epoch->second.c_str(), nullptr, 10), true), notes,
                  run);
  } else if (fs::exists(result)) {
    read_history(run, parse_result(files::read(result), result.string()).epochs, true);
  }
}

void check_run(const fs::path& run) {
  const auto path = [&](const char* name) { return (run / name).string(); };
  const auto check_there = [&](const char* name) {
    if (!fs::exists(run / name)) fail(path(name) + " is missing");
  };
  check_there(kConfigFile);
  check_sealed_text(files::read(path(kConfigFile)), path(kConfigFile));
  bool has_weights = false;
  for (const char* name : {kStateFile, kBestFile, kLastFile}) {
    if (!fs::exists(run / name)) continue;
    has_weights = true;
    parse_sealed(files::read(path(name)), path(name));
  }
  // A run that is over may be kept without weights, but not without some of them.
  if (has_weights && fs::exists(run / kResultFile)) {
    const RunResult result = parse_result(files::read(path(kResultFile)), path(kResultFile));
    check_there(kStateFile);
    if (result.epochs > 0) check_there(kLastFile);
    if (result.best_epoch > 0) check_there(kBestFile);
  }
  check_lines(run);
}

}  // namespace hdetach::train
