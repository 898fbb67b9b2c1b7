#include "report/experiment_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <system_error>

#include "report/natural_order.h"
#include "report/run_lines.h"

namespace hdetach::report {
namespace {

namespace fs = std::filesystem;

// Several files may share the runs of a folder, as transfer.toml those of copy-100.toml.
void merge(train::Sweep& sweep, const train::Sweep& other) {
  const bool takes_delays = sweep.eval_delays.empty();
  if (takes_delays) sweep.eval_delays = other.eval_delays;
  for (train::SweepSetting setting : other.settings) {
    const auto same =
        std::find_if(sweep.settings.begin(), sweep.settings.end(),
                     [&](const train::SweepSetting& known) { return known.name == setting.name; });
    if (!takes_delays) setting.paper_eval.clear();
    if (same == sweep.settings.end()) {
      sweep.settings.push_back(std::move(setting));
      continue;
    }
    if (same->paper.empty()) same->paper = setting.paper;
    if (takes_delays) same->paper_eval = setting.paper_eval;
    if (same->paper_scores.empty()) same->paper_scores = setting.paper_scores;
  }
}

}  // namespace

std::vector<fs::path> experiment_files(const fs::path& folder, const std::string& first) {
  std::vector<fs::path> found;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code no_file;
    const fs::path& path = it->path();
    if (path.extension() == ".toml" && path.filename() != "config.toml" &&
        it->is_regular_file(no_file)) {
      found.push_back(path);
    }
  }
  const auto rank = [&](const fs::path& path) {
    return path.stem() == first ? 0 : path.stem() == folder.filename() ? 1 : 2;
  };
  std::sort(found.begin(), found.end(), [&](const fs::path& a, const fs::path& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b)
                              : natural_less(a.filename().string(), b.filename().string());
  });
  return found;
}

std::optional<ExperimentPlan> read_experiment_files(const std::vector<fs::path>& files,
                                                    Notices& notices) {
  std::optional<ExperimentPlan> plan;
  for (const fs::path& file : files) {
    try {
      const std::string text = read_text(file);
      if (text.find("[[setting]]") == std::string::npos) continue;
      const train::Sweep sweep = train::parse_sweep(text, file.string());
      if (!plan) {
        plan = ExperimentPlan{sweep, {}};
      } else if (sweep.task == plan->sweep.task) {
        merge(plan->sweep, sweep);
      } else {
        continue;
      }
      for (const train::SweepSetting& setting : sweep.settings) {
        for (const int64_t seed : sweep.seeds) plan->runs.push_back({setting.name, seed});
      }
    } catch (const std::exception& problem) {
      notices.add(fmt::format("{}; the runs are shown without what this file says of them",
                              problem.what()));
    }
  }
  return plan;
}

}  // namespace hdetach::report
