#include "report/documents/result_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "report/documents/markdown.h"
#include "report/documents/wording.h"

namespace hdetach::report {
namespace {

// "best validation, %", "best validation CIDEr"
std::string with_unit(const std::string& name, const train::Sweep& sweep) {
  return name + (sweep.task == "caption" ? " CIDEr" : ", %");
}

// One cell for each item.
template <class Items, class Cell>
std::vector<std::string> cells_of(const Items& items, const Cell& cell) {
  std::vector<std::string> out;
  for (const auto& item : items) out.push_back(cell(item));
  return out;
}

struct SettingRow {
  const train::SweepSetting& setting;
  SettingFigures figures;
};

struct RunRow {
  const train::SweepSetting& setting;
  const ShownRun& run;
  const RunRecord& record;
};

std::string seeds_cell(const SettingFigures& figures) {
  const int unfinished = figures.runs - figures.over;
  return std::to_string(figures.runs) +
         (unfinished > 0 ? fmt::format(" ({} unfinished)", unfinished) : "");
}

int64_t skipped_updates(const RunRecord& run) {
  int64_t sum = 0;
  for (const Epoch& epoch : run.epochs) sum += epoch.skipped;
  return sum;
}

std::string ended_cell(const RunRecord& run) {
  return run.result ? run.result->status : "unfinished";
}

template <class Rows, class Has>
bool any(const Rows& rows, const Has& has) {
  return std::any_of(rows.begin(), rows.end(), has);
}

// The values of one score, run by run, where it was tested.
std::vector<double> test_scores(const std::vector<RunRecord>& runs, const std::string& name) {
  std::vector<double> out;
  for (const RunRecord& run : runs) {
    if (!run.result) continue;
    const auto found = run.result->test_caption_scores.find(name);
    if (found != run.result->test_caption_scores.end()) out.push_back(found->second);
  }
  return out;
}

std::string score_cell(const std::vector<double>& values, bool each, int decimals) {
  if (values.empty()) return "-";
  std::optional<Spread> spread;
  std::string all;
  for (const double value : values) {
    add(spread, value);
    all += (all.empty() ? "" : ", ") + times_100(value, decimals);
  }
  const std::string mean = times_100(spread->mean, decimals);
  return each && values.size() > 1 ? fmt::format("{} ({})", mean, all) : mean;
}

}  // namespace

int shown_decimals(const train::Sweep& sweep) { return sweep.task == "mnist" ? 2 : 1; }

std::string threshold_text(const train::Sweep& sweep) {
  return fmt::format("{:g}{}", 100 * sweep.threshold, sweep.task == "caption" ? "" : "%");
}

std::string settings_markdown(const Experiment& experiment) {
  const train::Sweep& sweep = experiment.record.sweep;
  const int decimals = shown_decimals(sweep);
  std::vector<SettingRow> rows;
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    rows.push_back({sweep.settings[i], figures(experiment.record, i)});
  }
  MarkdownTable table;
  const auto column = [&](const std::string& heading, const auto& cell) {
    table.add(heading, cells_of(rows, cell));
  };
  column("setting", [](const SettingRow& row) { return markdown_text(row.setting.name); });
  if (any(rows, [](const SettingRow& row) { return !row.setting.paper.empty(); })) {
    column("paper", [](const SettingRow& row) {
      return row.setting.paper.empty() ? "-" : markdown_text(row.setting.paper);
    });
  }
  column("seeds", [](const SettingRow& row) { return seeds_cell(row.figures); });
  if (any(rows, [](const SettingRow& row) { return row.figures.diverged > 0; })) {
    column("diverged", [](const SettingRow& row) { return std::to_string(row.figures.diverged); });
  }
  column(with_unit("best validation", sweep) + ": mean (min to max)",
         [&](const SettingRow& row) { return spread_text(row.figures.best, decimals); });
  column("median of the last 20 epochs",
         [&](const SettingRow& row) { return spread_text(row.figures.late, decimals); });
  column("epochs to " + threshold_text(sweep), [](const SettingRow& row) -> std::string {
    const auto& epochs = row.figures.epochs_to_threshold;
    if (!epochs) return "never";
    return fmt::format("{} of {} seed{}, mean {:.0f}", epochs->count, row.figures.runs,
                       row.figures.runs == 1 ? "" : "s", epochs->mean);
  });
  if (any(rows, [](const SettingRow& row) { return row.figures.test.has_value(); })) {
    column(with_unit("test", sweep),
           [&](const SettingRow& row) { return spread_text(row.figures.test, decimals); });
  }
  column("largest gradient norm",
         [](const SettingRow& row) { return norm_text(row.figures.largest_grad_norm); });
  return table.text();
}

std::string runs_markdown(const Experiment& experiment) {
  const train::Sweep& sweep = experiment.record.sweep;
  const int decimals = shown_decimals(sweep);
  std::vector<RunRow> rows;
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    for (size_t run = 0; run < experiment.shown[i].size(); ++run) {
      rows.push_back({sweep.settings[i], experiment.shown[i][run], experiment.record.runs[i][run]});
    }
  }
  MarkdownTable table;
  const auto column = [&](const std::string& heading, const auto& cell) {
    table.add(heading, cells_of(rows, cell));
  };
  column("setting", [](const RunRow& row) { return markdown_text(row.setting.name); });
  column("seed", [](const RunRow& row) {
    return row.run.seed ? std::to_string(*row.run.seed) : std::string("-");
  });
  column("epochs", [](const RunRow& row) { return with_commas(row.record.epochs.back().epoch); });
  column(with_unit("best validation", sweep), [&](const RunRow& row) {
    const Epoch* const best = best_epoch(row.record);
    return fmt::format("{} (epoch {})", times_100(best->valid_measure, decimals),
                       with_commas(best->epoch));
  });
  column("median of the last 20 epochs",
         [&](const RunRow& row) { return times_100(*late_accuracy(row.record), decimals); });
  column("epochs to " + threshold_text(sweep), [&](const RunRow& row) {
    const Epoch* const first = first_epoch_at(row.record, sweep.threshold);
    return first != nullptr ? with_commas(first->epoch) : "never";
  });
  const auto test = [](const RunRow& row) -> std::optional<double> {
    return row.record.result ? row.record.result->test_measure : std::nullopt;
  };
  if (any(rows, [&](const RunRow& row) { return test(row).has_value(); })) {
    column(with_unit("test", sweep), [&](const RunRow& row) {
      const auto value = test(row);
      return value ? times_100(*value, decimals) : std::string("-");
    });
  }
  column("largest gradient norm",
         [](const RunRow& row) { return norm_text(largest_grad_norm(row.record)); });
  if (any(rows, [](const RunRow& row) { return skipped_updates(row.record) > 0; })) {
    column("skipped updates",
           [](const RunRow& row) { return with_commas(skipped_updates(row.record)); });
  }
  if (any(rows, [](const RunRow& row) { return ended_cell(row.record) != "finished"; })) {
    column("ended", [](const RunRow& row) { return markdown_text(ended_cell(row.record)); });
  }
  return table.text();
}

void need_delays(const train::Sweep& sweep) {
  if (sweep.eval_delays.empty()) {
    throw std::runtime_error("no experiment file of this folder has eval-delays");
  }
}

std::string delays_markdown(const Experiment& experiment) {
  const train::Sweep& sweep = experiment.record.sweep;
  need_delays(sweep);
  MarkdownTable table;
  table.add("delay", cells_of(sweep.eval_delays, with_commas));
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    const train::SweepSetting& setting = sweep.settings[i];
    const SettingFigures row = figures(experiment.record, i);
    table.add(markdown_text(setting.name), cells_of(row.eval, [&](const auto& accuracy) {
                return spread_text(accuracy, shown_decimals(sweep));
              }));
    if (setting.paper_eval.empty()) continue;
    table.add("paper", cells_of(setting.paper_eval,
                                [](double percent) { return fmt::format("{:.1f}", percent); }));
  }
  return table.text();
}

std::string scores_markdown(const Experiment& experiment) {
  const train::Sweep& sweep = experiment.record.sweep;
  if (sweep.task != "caption") {
    throw std::runtime_error(fmt::format("scores are of captions, not of the task {}", sweep.task));
  }
  constexpr const char* kShownScores[][2] = {
      {"B-1", "Bleu_1"},    {"B-2", "Bleu_2"},      {"B-3", "Bleu_3"}, {"B-4", "Bleu_4"},
      {"METEOR", "METEOR"}, {"ROUGE-L", "ROUGE_L"}, {"CIDEr", "CIDEr"}};
  MarkdownTable table;
  std::vector<std::string> names;
  for (const train::SweepSetting& setting : sweep.settings) {
    if (!setting.paper_scores.empty()) names.push_back("paper, " + markdown_text(setting.name));
  }
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    const size_t seeds = test_scores(experiment.record.runs[i], "CIDEr").size();
    names.push_back("ours, " + with_seeds(markdown_text(sweep.settings[i].name), seeds));
  }
  table.add("", names);
  for (const auto& [heading, key] : kShownScores) {
    std::vector<std::string> cells;
    const auto of_paper =
        std::find(train::kPaperScores.begin(), train::kPaperScores.end(), std::string(key));
    for (const train::SweepSetting& setting : sweep.settings) {
      if (setting.paper_scores.empty()) continue;
      cells.push_back(of_paper == train::kPaperScores.end()
                          ? "-"
                          : fmt::format("{:.1f}", setting.paper_scores[static_cast<size_t>(
                                                      of_paper - train::kPaperScores.begin())]));
    }
    for (const std::vector<RunRecord>& runs : experiment.record.runs) {
      cells.push_back(
          score_cell(test_scores(runs, key), std::string(key) == "CIDEr", shown_decimals(sweep)));
    }
    table.add(heading, std::move(cells));
  }
  return table.text();
}

}  // namespace hdetach::report
