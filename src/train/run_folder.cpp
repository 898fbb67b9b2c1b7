#include "train/run_folder.h"

#include <fmt/core.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "formats/files.h"
#include "train/checkpoint.h"

namespace hdetach::train {
namespace {

constexpr const char *kConfig = "config.toml", *kMetrics = "metrics.jsonl", *kXrays = "xray.jsonl",
                     *kBest = "best.safetensors", *kLast = "last.safetensors",
                     *kState = "state.safetensors", *kResult = "result.json",
                     *kSessions = "sessions.jsonl";

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
  return parse_config(files::read(run / kConfig), (run / kConfig).string());
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

void RunFolder::begin(const Config& config, const std::map<std::string, std::string>& extra) {
  std::filesystem::remove(path_ / kResult);
  for (const auto& [name, content] : extra) files::write(path_ / name, content);
  files::write(path_ / kConfig, to_toml(config));
}

void RunFolder::add_session(const std::string& json) {
  files::append_line(path_ / kSessions, json);
}

bool RunFolder::restore(RunState& run) {
  const bool saved = std::filesystem::exists(path_ / kState);
  if (saved) load_state(run, files::read(path_ / kState), (path_ / kState).string());
  drop_metrics_after(run.progress.epoch);
  drop_xrays_after(run.progress.epoch);
  return saved;
}

void RunFolder::drop_metrics_after(int64_t epoch) {
  if (!std::filesystem::exists(path_ / kMetrics)) return;
  std::istringstream lines(files::read(path_ / kMetrics));
  std::string kept;
  int64_t count = 0;
  for (std::string line; count < epoch && std::getline(lines, line); ++count) kept += line + "\n";
  if (count < epoch) {
    throw std::runtime_error(fmt::format("{} has {} lines but the state is at epoch {}",
                                         (path_ / kMetrics).string(), count, epoch));
  }
  files::write(path_ / kMetrics, kept);
}

void RunFolder::drop_xrays_after(int64_t epoch) {
  if (!std::filesystem::exists(path_ / kXrays)) return;
  std::string kept;
  for (const XrayLine& each : xray_lines(path_)) {
    if (each.record.epoch.value_or(epoch + 1) <= epoch) kept += each.text + "\n";
  }
  files::write(path_ / kXrays, kept);
}

void RunFolder::save_epoch(RunState& run, const EpochMetrics& metrics, bool best,
                           const std::optional<xray::Record>& xray) {
  files::append_line(path_ / kMetrics, to_json(metrics));
  if (xray) files::append_line(path_ / kXrays, to_json(*xray));
  const std::string weights = weights_file(run.parameters());
  if (best) files::write(path_ / kBest, weights);
  files::write(path_ / kLast, weights);
  save_state(run);
}

void RunFolder::save_state(RunState& run) { files::write(path_ / kState, state_file(run)); }

void RunFolder::finish(const RunResult& result) {
  files::write(path_ / kResult, to_json(result) + "\n");
}

}  // namespace hdetach::train
