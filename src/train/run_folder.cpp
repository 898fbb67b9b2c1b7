#include "train/run_folder.h"

#include <fmt/core.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "formats/files.h"
#include "formats/json_object.h"
#include "train/checkpoint.h"
#include "train/seal.h"

namespace hdetach::train {
namespace {

constexpr const char *kConfig = "config.toml", *kMetrics = "metrics.jsonl", *kXrays = "xray.jsonl",
                     *kBest = "best.safetensors", *kLast = "last.safetensors",
                     *kState = "state.safetensors", *kResult = "result.json",
                     *kSessions = "sessions.jsonl";
constexpr const char *kMetricsNote = "metrics", *kXraysNote = "xrays";  // in the state

struct XrayLine {
  std::string text;
  xray::Record record;
};

// The last line may be incomplete; it is left out.
std::vector<XrayLine> xray_lines(const std::filesystem::path& run) {
  std::vector<XrayLine> out;
  if (!std::filesystem::exists(run / kXrays)) return out;
  std::istringstream lines(files::read(run / kXrays));
  for (std::string line; std::getline(lines, line);) {
    const std::string place = fmt::format("{}:{}", (run / kXrays).string(), out.size() + 1);
    try {
      out.push_back({line, xray::parse_record(line, place)});
    } catch (const std::runtime_error&) {
      if (lines.peek() == std::char_traits<char>::eof()) break;
      throw;
    }
  }
  return out;
}

}  // namespace

std::optional<Config> read_config(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / kConfig)) return std::nullopt;
  const std::string text = files::read(run / kConfig), name = (run / kConfig).string();
  check_sealed_text(text, name);
  return parse_config(text, name);
}

void load_best(const std::vector<NamedTensor>& parameters, const std::filesystem::path& run) {
  load_weights(parameters, files::read(run / kBest), (run / kBest).string());
}

void load_last(const std::vector<NamedTensor>& parameters, const std::filesystem::path& run) {
  load_weights(parameters, files::read(run / kLast), (run / kLast).string());
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

std::optional<RunResult> RunFolder::result() const {
  if (!std::filesystem::exists(path_ / kResult)) return std::nullopt;
  return parse_result(files::read(path_ / kResult), (path_ / kResult).string());
}

std::string RunFolder::trace_of_a_run() const {
  for (const char* name : {kConfig, kState, kMetrics, kResult, kBest, kLast, kXrays, kSessions}) {
    if (std::filesystem::exists(path_ / name)) return name;
  }
  return {};
}

void RunFolder::begin(const Config& config, const std::map<std::string, std::string>& extra) {
  std::filesystem::remove(path_ / kResult);
  for (const auto& [name, content] : extra) files::write(path_ / name, content);
  files::write(path_ / kConfig, sealed_text(to_toml(config)));
}

void RunFolder::add_session(const std::string& json) {
  files::append_line(path_ / kSessions, json);
}

bool RunFolder::restore(RunState& run) {
  check_extra(run);
  const bool saved = std::filesystem::exists(path_ / kState);
  safetensors::Metadata notes;
  if (saved) notes = load_state(run, files::read(path_ / kState), (path_ / kState).string());
  const int64_t epoch = run.progress.epoch;
  const KeptLines metrics = metrics_until(epoch, saved), xrays = xrays_until(epoch);
  const auto check = [&](const char* note, const KeptLines& lines, const char* file) {
    const auto found = notes.find(note);
    if (found == notes.end() || found->second == lines.checksum.text()) return;
    throw std::runtime_error(
        fmt::format("{} is damaged: up to epoch {} it is not what the state was saved with; "
                    "restore the file from a copy, or train again into another folder",
                    (path_ / file).string(), epoch));
  };
  check(kMetricsNote, metrics, kMetrics);
  check(kXraysNote, xrays, kXrays);
  // Needed at the end, or by who reads the run: better known to be damaged now.
  if (run.progress.best_epoch > 0) {
    parse_sealed(files::read(path_ / kBest), (path_ / kBest).string());
  }
  const auto keep = [&](const KeptLines& lines, const char* file, Checksum& checksum) {
    if (std::filesystem::exists(path_ / file)) files::write(path_ / file, lines.text);
    checksum = lines.checksum;
  };
  keep(metrics, kMetrics, metrics_);
  keep(xrays, kXrays, xrays_);
  return saved;
}

// The files of the task are made from its data: others than those of the folder mean other data.
void RunFolder::check_extra(const RunState& run) const {
  if (!std::filesystem::exists(path_ / kConfig)) return;
  for (const auto& [name, content] : run.files()) {
    const std::filesystem::path file = path_ / name;
    if (std::filesystem::exists(file) && files::read(file) == content) continue;
    throw std::runtime_error(
        fmt::format("{} is missing or not that of {}; put back the file, or the data that the run "
                    "began with",
                    file.string(), run.config().data));
  }
}

RunFolder::KeptLines RunFolder::metrics_until(int64_t epochs, bool saved) const {
  const std::filesystem::path path = path_ / kMetrics;
  KeptLines kept;
  if (!std::filesystem::exists(path)) {
    if (epochs == 0) return kept;
    throw std::runtime_error(fmt::format(
        "{} is missing, but the state is at epoch {}; restore the file from a copy, or train again "
        "into another folder",
        path.string(), epochs));
  }
  std::istringstream lines(files::read(path));
  std::string line;
  int64_t count = 0;
  while (count < epochs && std::getline(lines, line)) {
    const std::string place = fmt::format("{}:{}", path.string(), ++count);
    const int64_t epoch = JsonObject(line, place).whole("epoch");
    if (epoch != count) {
      throw std::runtime_error(fmt::format(
          "{}: this is epoch {}, where {} should stand; restore the file from a copy, or train "
          "again into another folder",
          place, epoch, count));
    }
    kept.add(line);
  }
  if (count < epochs) {
    throw std::runtime_error(fmt::format(
        "{} has {} lines but the state is at epoch {}; restore the file from a copy, or train "
        "again into another folder",
        path.string(), count, epochs));
  }
  // The first epoch's line comes before the first state, a second one does not.
  if (!saved && std::getline(lines, line) && std::getline(lines, line)) {
    throw std::runtime_error(
        fmt::format("{} is missing, but metrics.jsonl has epochs; restore the file from a copy, or "
                    "train again into another folder",
                    (path_ / kState).string()));
  }
  return kept;
}

RunFolder::KeptLines RunFolder::xrays_until(int64_t epochs) const {
  KeptLines kept;
  for (const XrayLine& each : xray_lines(path_)) {
    if (each.record.epoch.value_or(epochs + 1) <= epochs) kept.add(each.text);
  }
  return kept;
}

void RunFolder::save_epoch(RunState& run, const EpochMetrics& metrics, bool best,
                           const std::optional<xray::Record>& xray) {
  const auto append = [&](const char* file, const std::string& line, Checksum& checksum) {
    files::append_line(path_ / file, line);
    checksum.add(line);
  };
  append(kMetrics, to_json(metrics), metrics_);
  if (xray) append(kXrays, to_json(*xray), xrays_);
  const std::string weights = weights_file(run.parameters());
  if (best) files::write(path_ / kBest, weights);
  files::write(path_ / kLast, weights);
  save_state(run);
}

void RunFolder::save_state(RunState& run) {
  files::write(path_ / kState,
               state_file(run, {{kMetricsNote, metrics_.text()}, {kXraysNote, xrays_.text()}}));
}

void RunFolder::finish(const RunResult& result) {
  files::write(path_ / kResult, to_json(result) + "\n");
}

}  // namespace hdetach::train
