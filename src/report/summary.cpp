#include "report/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace hdetach::report {
namespace {

using nlohmann::ordered_json;

// Cells under two lines of heading, each column as wide as its widest text.
class Table {
 public:
  Table(std::vector<std::string> heading, std::vector<std::string> units)
      : rows_{std::move(heading), std::move(units)} {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    std::string out;
    for (size_t i = 0; i < rows_.size(); ++i) out += line(i) + "\n";
    return out;
  }

  std::string line(size_t index) const {
    std::string out;
    for (size_t column = 0; column < rows_[index].size(); ++column) {
      size_t width = 0;
      for (const auto& row : rows_) width = std::max(width, row[column].size());
      out += fmt::format("{:<{}}  ", rows_[index][column], width);
    }
    return out.substr(0, out.find_last_not_of(' ') + 1);
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string or_dash(const std::optional<Spread>& accuracy) {
  return accuracy ? percent(*accuracy) : "-";
}

// A row for each setting under two lines of heading, the paper's column apart.
struct SettingCells {
  std::vector<std::string> heading, units;
  std::vector<std::vector<std::string>> rows;
  std::vector<SettingFigures> figures;
};

SettingCells settings_cells(const SweepRecord& record) {
  const train::Sweep& sweep = record.sweep;
  SettingCells out;
  for (size_t i = 0; i < sweep.settings.size(); ++i) out.figures.push_back(figures(record, i));
  const bool tested = std::any_of(out.figures.begin(), out.figures.end(),
                                  [](const SettingFigures& f) { return bool(f.test); });

  // Captions are measured by CIDEr, shown as papers do: times 100.
  const std::string unit = sweep.task == "caption" ? "CIDEr (min-max)" : "% (min-max)";
  out.heading = {"", "runs", "best validation", "last 20", "epochs"};
  out.units = {"setting", "over", unit, "epochs",
               fmt::format("to {:g}{}", 100 * sweep.threshold, sweep.task == "caption" ? "" : "%")};
  if (tested) {
    out.heading.push_back("test");
    out.units.push_back(unit);
  }
  out.heading.insert(out.heading.end(), {"largest", "training"});
  out.units.insert(out.units.end(), {"gradient", "time"});
  for (size_t i = 0; i < out.figures.size(); ++i) {
    const SettingFigures& f = out.figures[i];
    std::vector<std::string> row = {sweep.settings[i].name, fmt::format("{}/{}", f.over, f.runs),
                                    or_dash(f.best), f.late ? percent(f.late->mean) : "-",
                                    f.epochs_to_threshold
                                        ? fmt::format("{:.0f} ({}/{})", f.epochs_to_threshold->mean,
                                                      f.epochs_to_threshold->count, f.runs)
                                        : fmt::format("- (0/{})", f.runs)};
    if (tested) row.push_back(or_dash(f.test));
    row.push_back(f.largest_grad_norm ? short_number(*f.largest_grad_norm) : "-");
    row.push_back(duration(f.seconds));
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string settings_table(const SweepRecord& record) {
  const SettingCells cells = settings_cells(record);
  Table table(cells.heading, cells.units);
  for (const std::vector<std::string>& row : cells.rows) table.add(row);
  std::string out = table.line(0) + "\n" + table.line(1) + "\n";
  for (size_t i = 0; i < cells.rows.size(); ++i) {
    const std::string& paper = record.sweep.settings[i].paper;
    const int diverged = cells.figures[i].diverged;
    out += table.line(2 + i) + "\n";
    if (diverged > 0) out += fmt::format("  diverged: {} of its runs\n", diverged);
    if (!paper.empty()) out += "  paper: " + paper + "\n";
  }
  return out;
}

// One row for each delay, a few settings beside each other at a time.
std::string eval_tables(const SweepRecord& record) {
  const train::Sweep& sweep = record.sweep;
  constexpr size_t kBeside = 3;
  std::string out;
  for (size_t first = 0; first < sweep.settings.size(); first += kBeside) {
    const size_t end = std::min(first + kBeside, sweep.settings.size());
    std::vector<std::string> heading = {""}, units = {"delay"};
    for (size_t i = first; i < end; ++i) {
      heading.insert(heading.end(), {sweep.settings[i].name, ""});
      units.insert(units.end(), {"% (min-max)", "paper"});
    }
    Table table(heading, units);
    for (size_t d = 0; d < sweep.eval_delays.size(); ++d) {
      std::vector<std::string> row = {std::to_string(sweep.eval_delays[d])};
      for (size_t i = first; i < end; ++i) {
        const std::vector<double>& paper = sweep.settings[i].paper_eval;
        row.push_back(or_dash(figures(record, i).eval[d]));
        row.push_back(paper.empty() ? "-" : fmt::format("{:.1f}", paper[d]));
      }
      table.add(std::move(row));
    }
    out += "\n" + table.text();
  }
  return out;
}

ordered_json to_json(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json to_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"runs", spread->count},
          {"mean", to_json(spread->mean)},
          {"min", to_json(spread->low)},
          {"max", to_json(spread->high)}};
}

}  // namespace

std::string duration(double seconds) {
  const int64_t total = std::llround(std::clamp(seconds, 0.0, 1e12));
  const int64_t minutes = total / 60, hours = minutes / 60;
  if (total < 60) return fmt::format("{} s", total);
  if (hours == 0) return fmt::format("{} min {} s", minutes, total % 60);
  if (hours < 48) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string percent(double accuracy) { return fmt::format("{:.1f}", 100 * accuracy); }

std::string percent(const Spread& accuracy) {
  if (accuracy.count == 1) return percent(accuracy.mean);
  return fmt::format("{} ({}-{})", percent(accuracy.mean), percent(accuracy.low),
                     percent(accuracy.high));
}

std::string short_number(double value) {
  return value >= 100 && value < 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.2g}", value);
}

std::string summary_text(const SweepRecord& record) {
  return settings_table(record) + (record.sweep.eval_delays.empty() ? "" : eval_tables(record));
}

SummaryTable summary_table(const SweepRecord& record) {
  const train::Sweep& sweep = record.sweep;
  SettingCells cells = settings_cells(record);
  SummaryTable table;
  for (size_t i = 0; i < cells.heading.size(); ++i) {
    table.columns.push_back(cells.heading[i] + (cells.heading[i].empty() ? "" : " ") +
                            cells.units[i]);
  }
  table.rows = std::move(cells.rows);
  const auto add_column = [&](size_t place, const std::string& name, const auto& cell) {
    const auto at = static_cast<std::ptrdiff_t>(place);
    table.columns.insert(table.columns.begin() + at, name);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      table.rows[i].insert(table.rows[i].begin() + at, cell(i));
    }
  };
  const auto& all = cells.figures;
  if (std::any_of(all.begin(), all.end(), [](const SettingFigures& f) { return f.diverged > 0; })) {
    add_column(2, "runs diverged", [&](size_t i) { return std::to_string(all[i].diverged); });
  }
  const auto& settings = sweep.settings;
  if (std::any_of(settings.begin(), settings.end(),
                  [](const train::SweepSetting& s) { return !s.paper.empty(); })) {
    add_column(1, "paper", [&](size_t i) {
      return settings[i].paper.empty() ? std::string("-") : settings[i].paper;
    });
  }
  const bool compared =
      std::any_of(settings.begin(), settings.end(),
                  [](const train::SweepSetting& s) { return !s.paper_eval.empty(); });
  for (size_t d = 0; d < sweep.eval_delays.size(); ++d) {
    const std::string delay = fmt::format("delay {}", sweep.eval_delays[d]);
    add_column(table.columns.size(), delay + ", %",
               [&](size_t i) { return or_dash(all[i].eval[d]); });
    if (!compared) continue;
    add_column(table.columns.size(), delay + ", paper", [&](size_t i) {
      const std::vector<double>& paper = settings[i].paper_eval;
      return paper.empty() ? std::string("-") : fmt::format("{:.1f}", paper[d]);
    });
  }
  return table;
}

ordered_json summary_json(const SweepRecord& record) {
  const train::Sweep& sweep = record.sweep;
  const std::string measure = sweep.task == "caption" ? "cider" : "accuracy";
  ordered_json out = {{"task", sweep.task}, {"threshold", sweep.threshold}};
  out["settings"] = ordered_json::array();
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    const SettingFigures f = figures(record, i);
    const train::SweepSetting& setting = sweep.settings[i];
    ordered_json row = {{"setting", setting.name},
                        {"runs", f.runs},
                        {"over", f.over},
                        {"diverged", f.diverged},
                        {"best_valid_" + measure, to_json(f.best)},
                        {"last_20_median", to_json(f.late)},
                        {"epochs_to_threshold", to_json(f.epochs_to_threshold)},
                        {"test_" + measure, to_json(f.test)}};
    // JSON has no infinity: a norm that was not finite is null, and so is one that is not there.
    row["largest_grad_norm"] = f.largest_grad_norm ? to_json(*f.largest_grad_norm) : nullptr;
    row["seconds"] = to_json(f.seconds);
    if (!setting.paper.empty()) row["paper"] = setting.paper;
    for (size_t d = 0; d < sweep.eval_delays.size(); ++d) {
      ordered_json point = {{"delay", sweep.eval_delays[d]}, {"accuracy", to_json(f.eval[d])}};
      if (!setting.paper_eval.empty()) point["paper_percent"] = setting.paper_eval[d];
      row["eval"].push_back(std::move(point));
    }
    for (size_t s = 0; s < sweep.seeds.size(); ++s) {
      const RunRecord& run = record.runs[i][s];
      const Epoch* best = best_epoch(run);
      row["seeds"].push_back(
          {{"seed", sweep.seeds[s]},
           {"status", run.result ? ordered_json(run.result->status) : ordered_json(nullptr)},
           {"epochs", run.epochs.empty() ? 0 : run.epochs.back().epoch},
           {"best_valid_" + measure, best ? ordered_json(best->valid_measure) : nullptr}});
    }
    out["settings"].push_back(std::move(row));
  }
  return out;
}

}  // namespace hdetach::report
