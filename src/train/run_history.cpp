#include "train/run_history.h"

#include <fmt/core.h>

#include <cstring>
#include <sstream>
#include <stdexcept>

#include "formats/files.h"
#include "formats/json_object.h"
#include "formats/mapped_file.h"
#include "train/seal.h"

namespace hdetach::train {
namespace {

namespace fs = std::filesystem;

constexpr const char *kEpochNote = "epoch", *kMetricsNote = "metrics", *kXraysNote = "xrays",
                     *kFileNote = "file:", *kSettingsNote = "settings";

[[noreturn]] void fail(const std::string& problem) {
  throw std::runtime_error(
      fmt::format("{}; restore the file from a copy, or train again into another folder", problem));
}

void check_there(const fs::path& file) {
  if (!fs::exists(file)) fail(file.string() + " is missing");
}

KeptLines metrics_until(const fs::path& run, int64_t epochs, size_t most) {
  const fs::path path = run / kMetricsFile;
  KeptLines kept;
  if (!fs::exists(path)) {
    if (epochs == 0) return kept;
    fail(fmt::format("{} is missing, but the run is at epoch {}", path.string(), epochs));
  }
  std::istringstream lines(files::read_regular(path, most));
  std::string line;
  int64_t count = 0;
  while (count < epochs && std::getline(lines, line) && !lines.eof()) {
    const std::string place = fmt::format("{}:{}", path.string(), ++count);
    const int64_t epoch = JsonObject(line, place).whole("epoch");
    if (epoch != count) {
      fail(fmt::format("{}: this is epoch {}, where {} should stand", place, epoch, count));
    }
    kept.add(line);
  }
  if (count < epochs) {
    fail(fmt::format("{} has {} whole lines, but the run is at epoch {}", path.string(), count,
                     epochs));
  }
  return kept;
}

KeptLines xrays_until(const fs::path& run, int64_t epochs, size_t most) {
  KeptLines kept;
  for (const XrayLine& each : xray_lines(run, most)) {
    if (each.record.epoch.value_or(epochs + 1) <= epochs) kept.add(each.text);
  }
  return kept;
}

}  // namespace

std::vector<XrayLine> xray_lines(const fs::path& run, size_t most) {
  std::vector<XrayLine> out;
  if (!fs::exists(run / kXraysFile)) return out;
  std::istringstream lines(files::read_regular(run / kXraysFile, most));
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
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

History read_history(const fs::path& run, int64_t epochs, size_t most) {
  return {metrics_until(run, epochs, most), xrays_until(run, epochs, most)};
}

std::optional<RunResult> read_result(const fs::path& run, size_t most) {
  const fs::path config = run / kConfigFile;
  const std::string name = (run / kResultFile).string();
  if (!fs::exists(name)) return std::nullopt;
  const std::string text = files::read_regular(name, most);
  if (!check_sealed_json(text, name) && fs::exists(config) &&
      is_sealed_text(files::read_regular(config, most))) {
    fail(name + " is damaged: its checksum is gone");
  }
  return parse_result(text, name + ":1");
}

Notes history_notes(const Checksum& metrics, const Checksum& xrays, int64_t epochs) {
  return {{kEpochNote, std::to_string(epochs)},
          {kMetricsNote, metrics.text()},
          {kXraysNote, xrays.text()}};
}

void check_history(const History& history, const Notes& notes, const fs::path& run) {
  const auto check = [&](const char* note, const KeptLines& lines, const char* file) {
    const auto found = notes.find(note);
    if (found == notes.end() || found->second == lines.checksum.text()) return;
    fail(fmt::format("{} is damaged: up to epoch {} it is not what it was when the run was saved",
                     (run / file).string(), notes.at(kEpochNote)));
  };
  check(kMetricsNote, history.metrics, kMetricsFile);
  check(kXraysNote, history.xrays, kXraysFile);
}

void check_lines(const fs::path& run, size_t most) {
  const fs::path state = run / kStateFile;
  if (fs::exists(state)) {
    const files::MappedFile file(state);
    const auto notes = safetensors::read_header(file.bytes(), state.string()).metadata;
    const auto epoch = notes.find(kEpochNote);
    if (epoch == notes.end()) return;  // of an earlier version
    const int64_t epochs = std::strtoll(epoch->second.c_str(), nullptr, 10);
    check_history(read_history(run, epochs, most), notes, run);
  } else if (const auto result = read_result(run, most)) {
    if (result->notes.empty()) {  // of an earlier version
      metrics_until(run, result->epochs, most);
    } else {
      check_history(read_history(run, result->epochs, most), result->notes, run);
    }
  }
}

Notes settings_notes(const Config& config) { return {{kSettingsNote, lasting_toml(config)}}; }

void check_settings(const Config& config, const Notes& notes, const fs::path& file) {
  const auto found = notes.find(kSettingsNote);
  if (found == notes.end()) return;  // of an earlier version
  Config of_file = parse_config(found->second, file.string());
  of_file.epochs = config.epochs;
  const std::string others = differences(config, of_file);
  if (!others.empty()) fail(fmt::format("{} is of another run: {}", file.string(), others));
}

Notes notes_of(const std::map<std::string, std::string>& files) {
  Notes notes;
  for (const auto& [name, content] : files) {
    Checksum checksum;
    checksum.add(content);
    notes[kFileNote + name] = checksum.text();
  }
  return notes;
}

void check_weights(const fs::path& run, const Config& config, const char* name) {
  check_there(run / name);
  const auto weights =
      parse_sealed(files::read_regular(run / name), (run / name).string()).metadata;
  check_settings(config, weights, run / name);
  for (const auto& [note, wanted] : weights) {
    if (note.rfind(kFileNote, 0) != 0) continue;
    const fs::path file = run / note.substr(std::strlen(kFileNote));
    check_there(file);
    Checksum checksum;
    checksum.add(files::read_regular(file));
    if (checksum.text() == wanted) continue;
    fail(fmt::format("{} is damaged: it is not what {} was saved with", file.string(), name));
  }
}

void check_never_saved(const fs::path& run) {
  const auto is_there = [&](const char* name) { return fs::exists(run / name); };
  if (is_there(kStateFile)) return;
  const std::string state = (run / kStateFile).string();
  if (is_there(kResultFile)) fail(state + " is missing, but there is a result.json");
  // The first epoch's line and then its weights come before the first state, a second line does
  // not.
  std::string line;
  int64_t lines = 0;
  if (is_there(kMetricsFile)) {
    std::istringstream metrics(files::read_regular(run / kMetricsFile));
    while (std::getline(metrics, line)) ++lines;
  }
  if (lines > 1) fail(state + " is missing, but metrics.jsonl has epochs");
  for (const char* name : {kBestFile, kLastFile}) {
    if (lines == 0 && is_there(name))
      fail(fmt::format("{} is missing, but there is a {}", state, name));
  }
}

void check_files(const fs::path& run) {
  const std::string path = (run / kConfigFile).string();
  check_there(path);
  const std::string text = files::read_regular(path);
  check_sealed_text(text, path);
  const Config config = parse_config(text, path);
  for (const char* name : {kBestFile, kLastFile}) {
    if (fs::exists(run / name)) check_weights(run, config, name);
  }
  const fs::path state = run / kStateFile;
  if (fs::exists(state)) {
    const auto file = parse_sealed(files::read_regular(state), state.string());
    check_settings(config, file.metadata, state);
  }
  if (const auto result = read_result(run)) {
    check_settings(config, result->notes, run / kResultFile);
  }
  check_lines(run);
}

void check_run(const fs::path& run) {
  check_files(run);
  const auto result = read_result(run);
  const bool has_checksums = check_sealed_text(files::read_regular(run / kConfigFile), kConfigFile);
  const auto is_there = [&](const char* name) { return fs::exists(run / name); };
  // A run that is over may be kept without weights, but not without some of them.
  if (!result || !has_checksums ||
      !(is_there(kStateFile) || is_there(kBestFile) || is_there(kLastFile))) {
    return;
  }
  check_there(run / kStateFile);
  if (result->epochs > 0) check_there(run / kLastFile);
  if (result->best_epoch > 0) check_there(run / kBestFile);
}

}  // namespace hdetach::train
