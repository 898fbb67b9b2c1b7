#include "train/run_folder.h"

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

#include "formats/files.h"
#include "train/checkpoint.h"
#include "train/run_history.h"
#include "train/seal.h"

namespace hdetach::train {

std::optional<Config> read_config(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / kConfigFile)) return std::nullopt;
  const std::string name = (run / kConfigFile).string(), text = files::read_regular(name);
  check_sealed_text(text, name);
  return parse_config(text, name);
}

void load_best(const std::vector<NamedTensor>& parameters, const std::filesystem::path& run) {
  load_weights(parameters, files::read_regular(run / kBestFile), (run / kBestFile).string());
}

void load_last(const std::vector<NamedTensor>& parameters, const std::filesystem::path& run) {
  load_weights(parameters, files::read_regular(run / kLastFile), (run / kLastFile).string());
}

std::vector<xray::Record> read_xrays(const std::filesystem::path& run) {
  std::vector<xray::Record> records;
  for (XrayLine& each : xray_lines(run)) records.push_back(std::move(each.record));
  return records;
}

RunFolder::RunFolder(std::filesystem::path path)
    : path_((files::make_folder(path), std::move(path))), lock_(path_ / kRunLock) {
  if (!lock_.is_held()) {
    throw std::runtime_error(
        fmt::format("{} is in use by another process; wait for it, or name another folder by --out",
                    path_.string()));
  }
}

std::optional<RunResult> RunFolder::result() const { return read_result(path_); }

std::string RunFolder::trace_of_a_run() const {
  for (const char* name : {kConfigFile, kStateFile, kMetricsFile, kResultFile, kBestFile, kLastFile,
                           kXraysFile, kSessionsFile, kWordsFile}) {
    if (std::filesystem::exists(path_ / name)) return name;
  }
  return {};
}

void RunFolder::begin(const Config& config, const std::map<std::string, std::string>& extra) {
  std::filesystem::remove(path_ / kResultFile);
  for (const auto& [name, content] : extra) files::write_regular(path_ / name, content);
  files::write_regular(path_ / kConfigFile, sealed_text(to_toml(config)));
}

void RunFolder::add_session(const std::string& json) {
  files::append_line(path_ / kSessionsFile, json);
}

bool RunFolder::restore(RunState& run) {
  check_extra(run);
  const bool saved = std::filesystem::exists(path_ / kStateFile);
  safetensors::Metadata notes;
  if (saved) {
    const std::filesystem::path state = path_ / kStateFile;
    notes = load_state(run, files::read_regular(state), state.string());
    check_settings(run.config(), notes, state);
  } else {
    check_never_saved(path_);
  }
  const Progress& progress = run.progress;
  const History history = read_history(path_, progress.epoch);
  check_history(history, notes, path_);
  // Needed at the end, or by who reads the run: better known to be damaged now.
  if (progress.best_epoch > 0) check_weights(path_, run.config(), kBestFile);
  const auto keep = [&](const KeptLines& lines, const char* file, Checksum& checksum) {
    if (std::filesystem::exists(path_ / file)) files::write_regular(path_ / file, lines.text);
    checksum = lines.checksum;
  };
  keep(history.metrics, kMetricsFile, metrics_);
  keep(history.xrays, kXraysFile, xrays_);
  settings_ = settings_notes(run.config());
  // What was lost of it, no later epoch may make again.
  const bool between_epochs = progress.update == progress.epoch * progress.epoch_updates;
  if (saved && progress.epoch > 0 && between_epochs) {
    files::write_regular(path_ / kLastFile, weights_of(run));
  }
  return saved;
}

// The files of the task are made from its data: others than those of the folder mean other data.
void RunFolder::check_extra(const RunState& run) const {
  if (!std::filesystem::exists(path_ / kConfigFile)) return;
  for (const auto& [name, content] : run.files()) {
    const std::filesystem::path file = path_ / name;
    if (std::filesystem::exists(file) && files::read_regular(file) == content) continue;
    throw std::runtime_error(
        fmt::format("{} is missing or not that of {}; put back the file, or the data that the run "
                    "began with",
                    file.string(), run.config().data));
  }
}

std::string RunFolder::weights_of(RunState& run) const {
  safetensors::Metadata notes = notes_of(run.files());
  notes.insert(settings_.begin(), settings_.end());
  return weights_file(run.parameters(), notes);
}

void RunFolder::save_epoch(RunState& run, const EpochMetrics& metrics, bool best,
                           const std::optional<xray::Record>& xray) {
  lock_.check_still_there();
  const auto append = [&](const char* file, const std::string& line, Checksum& checksum) {
    files::append_line(path_ / file, line);
    checksum.add(line);
  };
  append(kMetricsFile, to_json(metrics), metrics_);
  if (xray) append(kXraysFile, to_json(*xray), xrays_);
  const std::string weights = weights_of(run);
  if (best) files::write_regular(path_ / kBestFile, weights);
  files::write_regular(path_ / kLastFile, weights);
  save_state(run);
}

void RunFolder::save_state(RunState& run) {
  lock_.check_still_there();
  safetensors::Metadata notes = history_notes(metrics_, xrays_, run.progress.epoch);
  notes.insert(settings_.begin(), settings_.end());
  files::write_regular(path_ / kStateFile, state_file(run, notes));
}

void RunFolder::finish(RunResult result) {
  lock_.check_still_there();
  result.notes = history_notes(metrics_, xrays_, result.epochs);
  result.notes.insert(settings_.begin(), settings_.end());
  files::write_regular(path_ / kResultFile, sealed_json(to_json(result)));
}

}  // namespace hdetach::train
