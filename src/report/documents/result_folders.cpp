#include "report/documents/result_folders.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "report/documents/wording.h"
#include "train/run_history.h"

namespace hdetach::report {
namespace {

// Settings and runs without an epoch are left out: they wait.
Experiment begun(Experiment all) {
  Experiment out;
  out.name = std::move(all.name);
  out.record.sweep = std::exchange(all.record.sweep, {});
  std::vector<train::SweepSetting> settings = std::exchange(out.record.sweep.settings, {});
  for (size_t i = 0; i < settings.size(); ++i) {
    std::vector<RunRecord> records;
    std::vector<ShownRun> shown;
    for (size_t run = 0; run < all.record.runs[i].size(); ++run) {
      if (all.record.runs[i][run].epochs.empty()) continue;
      records.push_back(std::move(all.record.runs[i][run]));
      shown.push_back(std::move(all.shown[i][run]));
    }
    if (records.empty()) continue;
    out.record.sweep.settings.push_back(std::move(settings[i]));
    out.record.runs.push_back(std::move(records));
    out.shown.push_back(std::move(shown));
  }
  return out;
}

}  // namespace

void cut(Experiment& experiment, int64_t last) {
  for (std::vector<RunRecord>& runs : experiment.record.runs) {
    for (RunRecord& run : runs) {
      if (run.epochs.back().epoch <= last) continue;
      while (!run.epochs.empty() && run.epochs.back().epoch > last) run.epochs.pop_back();
      if (run.epochs.empty()) {
        throw std::runtime_error(
            fmt::format("{} has a run without an epoch up to {}", experiment.name, last));
      }
      if (run.result) run.result = train::RunResult{"finished"};
    }
  }
}

const Experiment& ResultFolders::read(const std::filesystem::path& folder) {
  const auto known = known_.find(folder);
  if (known != known_.end()) return known->second;
  Experiments found = ExperimentReader({folder}).read();
  notices_.add(found.notices);
  if (found.all.size() > 1) {
    std::vector<std::string> names;
    for (const Experiment& one : found.all) names.push_back(one.name);
    throw std::runtime_error(
        fmt::format("{} holds several experiments ({}); name the folder of one", folder.string(),
                    comma_list(names)));
  }
  Experiment experiment = found.all.empty() ? Experiment{} : begun(std::move(found.all[0]));
  if (experiment.shown.empty()) {
    std::string message = fmt::format(
        "no run with an epoch in {}; paths are relative to the Markdown file", folder.string());
    for (const std::string& notice : found.notices.all()) message += ". " + notice;
    throw std::runtime_error(message);
  }
  for (const std::vector<ShownRun>& runs : experiment.shown) {
    for (const ShownRun& run : runs) {  // what is published must be whole
      train::check_lines(run.folder);
      train::read_result(run.folder);
    }
  }
  return known_.emplace(folder, std::move(experiment)).first->second;
}

Experiment ResultFolders::choose(const std::filesystem::path& folder,
                                 const std::vector<std::string>& settings) {
  const Experiment& all = read(folder);
  if (settings.empty()) return all;
  std::vector<std::string> names;
  for (const train::SweepSetting& setting : all.record.sweep.settings) {
    names.push_back(setting.name);
  }
  Experiment out;
  out.name = all.name;
  out.record.sweep = all.record.sweep;
  out.record.sweep.settings.clear();
  for (const std::string& setting : settings) {
    const auto found = std::find(names.begin(), names.end(), setting);
    if (found == names.end()) {
      throw std::runtime_error(fmt::format("{} has no run of a setting \"{}\"; it has {}",
                                           folder.string(), setting, comma_list(names)));
    }
    const auto i = static_cast<size_t>(found - names.begin());
    out.record.sweep.settings.push_back(all.record.sweep.settings[i]);
    out.record.runs.push_back(all.record.runs[i]);
    out.shown.push_back(all.shown[i]);
  }
  return out;
}

}  // namespace hdetach::report
