#include "report/experiments.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "report/experiment_file.h"
#include "report/find_runs.h"
#include "report/natural_order.h"

namespace hdetach::report {
namespace {

namespace fs = std::filesystem;

struct RunOfFolder {
  FoundRun found;
  std::shared_ptr<const RunFiles> files;
};

std::string task_of(const RunFiles& run) {
  if (!run.task.empty()) return run.task;
  const bool captions = std::any_of(run.record.epochs.begin(), run.record.epochs.end(),
                                    [](const Epoch& e) { return !e.caption_scores.empty(); });
  return captions ? "caption" : "";
}

bool names(const train::Sweep& sweep, const FoundRun& run) {
  const auto same = [&](const train::SweepSetting& setting) { return setting.name == run.setting; };
  return run.seed && std::any_of(sweep.settings.begin(), sweep.settings.end(), same);
}

// The runs of one folder and one task.
class Builder {
 public:
  Builder(std::string name, std::string task) {
    experiment_.name = std::move(name);
    experiment_.record.sweep.task = std::move(task);
    experiment_.record.sweep.folder = experiment_.name;
  }

  // Before the runs are added: the settings of the file come first, in its order.
  void follow(const train::Sweep& sweep) {
    train::Sweep& own = experiment_.record.sweep;
    own.threshold = sweep.threshold;
    own.eval_delays = sweep.eval_delays;
    own.settings = sweep.settings;
    experiment_.shown.resize(own.settings.size());
  }

  void add(const RunOfFolder& run) {
    experiment_.shown[setting(run.found.setting)].push_back(
        {run.found.name, run.found.folder.string(), run.found.seed, run.files});
  }

  // The runs of the files that have not begun.
  void add_waiting(const ExperimentPlan& plan, const fs::path& folder) {
    const auto nothing = std::make_shared<RunFiles>();
    for (const ExperimentPlan::Run& run : plan.runs) {
      std::vector<ShownRun>& shown = experiment_.shown[setting(run.setting)];
      const auto same = [&](const ShownRun& other) { return other.seed == run.seed; };
      if (std::any_of(shown.begin(), shown.end(), same)) continue;
      const std::string name = fmt::format("{}/seed-{}", run.setting, run.seed);
      shown.push_back({name, (folder / name).string(), run.seed, nothing});
    }
  }

  Experiment done() {
    train::Sweep& sweep = experiment_.record.sweep;
    std::vector<train::SweepSetting> settings;
    std::vector<std::vector<ShownRun>> shown;
    for (size_t i = 0; i < sweep.settings.size(); ++i) {
      std::vector<ShownRun>& runs = experiment_.shown[i];
      if (runs.empty()) continue;  // others of the file were not asked for
      std::stable_sort(runs.begin(), runs.end(), [](const ShownRun& a, const ShownRun& b) {
        return natural_less(a.name, b.name);
      });
      std::vector<RunRecord> records;
      for (const ShownRun& run : runs) records.push_back(run.files->record);
      experiment_.record.runs.push_back(std::move(records));
      settings.push_back(std::move(sweep.settings[i]));
      shown.push_back(std::move(runs));
    }
    sweep.settings = std::move(settings);
    experiment_.shown = std::move(shown);
    return std::move(experiment_);
  }

 private:
  size_t setting(const std::string& name) {
    std::vector<train::SweepSetting>& settings = experiment_.record.sweep.settings;
    const auto same = [&](const train::SweepSetting& known) { return known.name == name; };
    const auto found = std::find_if(settings.begin(), settings.end(), same);
    if (found != settings.end()) return static_cast<size_t>(found - settings.begin());
    train::SweepSetting setting;
    setting.name = name;
    settings.push_back(std::move(setting));
    experiment_.shown.emplace_back();
    return settings.size() - 1;
  }

  Experiment experiment_;
};

// An experiment for each task of the runs, which lie in one folder and are in natural order.
std::vector<Experiment> build(const fs::path& folder, const std::vector<RunOfFolder>& runs,
                              const std::string& first_file, const std::string& name,
                              Notices& notices) {
  const auto plan = read_experiment_files(experiment_files(folder, first_file), notices);
  const train::Sweep* const sweep = plan ? &plan->sweep : nullptr;
  // A file that names none of the runs lies there by chance.
  const bool follows =
      sweep != nullptr && std::any_of(runs.begin(), runs.end(), [&](const RunOfFolder& run) {
        return names(*sweep, run.found);
      });
  std::vector<std::string> tasks;
  std::vector<std::string> task(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    task[i] = task_of(*runs[i].files);
    if (task[i].empty() && follows && names(*sweep, runs[i].found)) task[i] = sweep->task;
    if (std::find(tasks.begin(), tasks.end(), task[i]) == tasks.end()) tasks.push_back(task[i]);
  }
  // Runs that do not tell their task go with those that do.
  if (tasks.size() > 1 && std::find(tasks.begin(), tasks.end(), "") != tasks.end()) {
    tasks.erase(std::find(tasks.begin(), tasks.end(), ""));
    std::replace(task.begin(), task.end(), std::string(), tasks[0]);
  }
  std::vector<Experiment> experiments;
  for (const std::string& one : tasks) {
    Builder builder(tasks.size() == 1 ? name : fmt::format("{} ({})", name, one), one);
    const bool by_file = follows && one == sweep->task;
    if (by_file) builder.follow(*sweep);
    for (size_t i = 0; i < runs.size(); ++i) {
      if (task[i] == one) builder.add(runs[i]);
    }
    const auto first = std::find_if(runs.begin(), runs.end(), [&](const RunOfFolder& run) {
      return by_file && run.found.whole && names(*sweep, run.found);
    });
    if (first != runs.end()) {
      builder.add_waiting(*plan,
                          first->found.folder.parent_path().parent_path());  // as it was named
    }
    experiments.push_back(builder.done());
  }
  return experiments;
}

std::string shown_name(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.empty() ? folder.string() : name;
}

}  // namespace

ExperimentReader::ExperimentReader(std::vector<fs::path> folders, std::string first_file)
    : folders_(std::move(folders)), first_file_(std::move(first_file)) {}

Experiments ExperimentReader::read() {
  Experiments out;
  std::vector<FoundRun> found = find_runs(folders_, out.notices);
  std::vector<fs::path> paths, order;
  for (const FoundRun& run : found) paths.push_back(run.folder);
  const auto files = reader_.read(paths);
  std::map<fs::path, std::vector<RunOfFolder>> by_folder;
  std::map<std::string, std::set<fs::path>> same_name;
  for (size_t i = 0; i < found.size(); ++i) {
    const fs::path folder = found[i].experiment;
    if (by_folder.count(folder) == 0) order.push_back(folder);
    same_name[shown_name(folder)].insert(folder);
    by_folder[folder].push_back({std::move(found[i]), files[i]});
  }
  for (const fs::path& folder : order) {
    std::vector<RunOfFolder>& runs = by_folder[folder];
    std::stable_sort(runs.begin(), runs.end(), [](const RunOfFolder& a, const RunOfFolder& b) {
      return natural_less(a.found.name, b.found.name);
    });
    const std::string name =
        same_name[shown_name(folder)].size() == 1 ? shown_name(folder) : folder.string();
    for (Experiment& experiment : build(folder, runs, first_file_, name, out.notices)) {
      out.all.push_back(std::move(experiment));
    }
    for (const RunOfFolder& run : runs) out.notices.add(run.files->notices);
  }
  return out;
}

std::string ExperimentReader::stamp() const {
  Notices notices;
  std::string stamp;
  std::set<fs::path> folders;
  for (const FoundRun& run : find_runs(folders_, notices)) {
    stamp += run.folder.string() + " " + run_stamp(run.folder) + "\n";
    folders.insert(run.experiment);
  }
  for (const fs::path& folder : folders) {
    for (const fs::path& file : experiment_files(folder, first_file_)) {
      stamp += file.string() + " " + file_stamp(file) + "\n";
    }
  }
  for (const std::string& notice : notices.all()) stamp += notice + "\n";
  return stamp;
}

}  // namespace hdetach::report
