#include "cli/sweep_plan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/files.h"
#include "formats/toml.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;

PlannedSweep read_sweep(const std::string& file, const fs::path& out, const std::string& device) {
  try {
    train::Sweep sweep = train::parse_sweep(files::read(file), file);
    for (train::SweepSetting& setting : sweep.settings) {
      if (!device.empty()) setting.config.device = device;
    }
    const fs::path folder = out / sweep.folder;
    return {file, std::move(sweep), folder};
  } catch (const toml::Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

// A sweep leaves a copy of its file and a page beside its runs, both under the name of the file.
void check_name_is_free(const std::vector<PlannedSweep>& others, const PlannedSweep& sweep) {
  for (const PlannedSweep& other : others) {
    if (other.folder == sweep.folder && other.name() == sweep.name()) {
      throw CLI::ValidationError(
          fmt::format("FILE {} and {} have the same name and the same folder, {}; name it once, or "
                      "rename one of them",
                      other.file.string(), sweep.file.string(), sweep.folder.string()));
    }
  }
}

class RunList {
 public:
  void add(PlannedRun run) {
    const auto [place, is_new] = places_.emplace(run.folder.string(), runs_.size());
    if (is_new) {
      runs_.push_back(std::move(run));
      return;
    }
    PlannedRun& same = runs_[place->second];
    const std::string found = train::differences(run.config, same.config);
    if (!found.empty()) {
      throw CLI::ValidationError(fmt::format(
          "FILE {} has the run {} of {} with other settings: {}; sweep them one by one, "
          "each with an --out of its own",
          run.file.string(), run.name, same.file.string(), found));
    }
    for (const int64_t delay : run.eval_delays) {
      std::vector<int64_t>& known = same.eval_delays;
      if (std::find(known.begin(), known.end(), delay) == known.end()) known.push_back(delay);
    }
  }
  std::vector<PlannedRun> take() { return std::move(runs_); }

 private:
  std::vector<PlannedRun> runs_;
  std::unordered_map<std::string, size_t> places_;  // by their folders: a sweep may have thousands
};

// A text that no run has is a slip: the others would train and that one would be missed.
std::vector<PlannedRun> chosen(std::vector<PlannedRun> all, const std::vector<std::string>& only) {
  const auto has = [](const PlannedRun& run, const std::string& text) {
    return run.name.find(text) != std::string::npos;
  };
  for (const std::string& text : only) {
    if (std::none_of(all.begin(), all.end(), [&](const auto& run) { return has(run, text); })) {
      throw CLI::ValidationError(fmt::format(
          "--only {}: no run has that in its name; the names are like {}", text, all[0].name));
    }
  }
  const auto unwanted = [&](const PlannedRun& run) {
    return std::none_of(only.begin(), only.end(),
                        [&](const std::string& text) { return has(run, text); });
  };
  if (!only.empty()) all.erase(std::remove_if(all.begin(), all.end(), unwanted), all.end());
  return all;
}

}  // namespace

SweepPlan plan_sweeps(const std::vector<std::string>& files, const fs::path& out,
                      const std::string& device, const std::vector<std::string>& only) {
  SweepPlan plan;
  RunList runs;
  for (const std::string& file : files) {
    PlannedSweep sweep = read_sweep(file, out, device);
    check_name_is_free(plan.sweeps, sweep);
    for (const train::SweepRun& run : train::runs(sweep.sweep)) {
      const std::string name = files.size() > 1 ? sweep.sweep.folder + "/" + run.name : run.name;
      runs.add({run.config, sweep.folder / run.name, sweep.file, name, sweep.sweep.eval_delays});
    }
    plan.sweeps.push_back(std::move(sweep));
  }
  plan.runs = chosen(runs.take(), only);
  return plan;
}

}  // namespace hdetach::cli
