#include "report/documents/delay_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "report/documents/chart.h"
#include "report/documents/result_tables.h"
#include "report/documents/wording.h"

namespace hdetach::report {
namespace {

constexpr double kDelaysWidth = 760, kDelaysHeight = 300;  // of the frame
constexpr double kBeside = 7;  // pixels between settings at one delay, so that each can be seen

// A sign for each setting, filled where it is ours and hollow where it is the paper's.
std::string marker(size_t setting, const ChartPoint& at, bool ours) {
  const char* const colour = chart_style(setting).colour;
  const char* const shapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "m-3.5 -3.5h7v7h-7z",
                                "m0 -5l5 8.5h-10z", "m0 -5l5 5l-5 5l-5 -5z"};
  return fmt::format(
      "<path class=\"{}\" transform=\"translate({:.1f} {:.1f})\" d=\"{}\" fill=\"{}\" "
      "stroke=\"{}\" stroke-width=\"1.2\"/>",
      ours ? "ours" : "paper", at.x, at.y, shapes[setting % std::size(shapes)],
      ours ? colour : "#fff", colour);
}

std::string plain_line(size_t setting, const std::vector<ChartPoint>& points, bool ours) {
  const ChartStyle style = {chart_style(setting).colour, ours ? "" : "5 4"};
  return fmt::format("<path d=\"{}\" {}/>\n", path_data(points), line_look(style, ours ? 2 : 1.2));
}

std::string marked_line(size_t setting, const std::vector<ChartPoint>& points, bool ours) {
  std::string out = plain_line(setting, points, ours);
  for (const ChartPoint& point : points) out += marker(setting, point, ours) + "\n";
  return out;
}

std::string line_sample(size_t setting, bool ours) {
  return plain_line(setting, {{0, 0}, {kLegendSample, 0}}, ours) +
         marker(setting, {kLegendSample / 2, 0}, ours);
}

// How many runs of the setting were tried.
size_t tried(const SettingFigures& of) {
  int most = 0;
  for (const auto& accuracy : of.eval) most = std::max(most, accuracy ? accuracy->count : 0);
  return static_cast<size_t>(most);
}

ChartFrame delay_frame(const train::Sweep& sweep, double top) {
  const auto [first, last] =
      std::minmax_element(sweep.eval_delays.begin(), sweep.eval_delays.end());
  ChartAxis x{
      "delay", static_cast<double>(*first) / 1.15, static_cast<double>(*last) * 1.15, true, {}};
  for (const int64_t delay : sweep.eval_delays) {
    x.marks.emplace_back(static_cast<double>(delay), with_commas(delay));
  }
  ChartAxis y{"accuracy, %", 0, 100, false, {}};
  for (int value = 0; value <= 100; value += 25) y.marks.emplace_back(value, std::to_string(value));
  return ChartFrame(50, top, kDelaysWidth, kDelaysHeight, x, y);
}

}  // namespace

std::string delays_words(const Experiment& experiment) {
  const train::Sweep& sweep = experiment.record.sweep;
  need_delays(sweep);
  std::string names;
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    const SettingFigures of = figures(experiment.record, i);
    names += fmt::format(
        "{}{}, {} at delay {} and {} at {}", names.empty() ? "" : "; ",
        with_seeds(sweep.settings[i].name, tried(of)),
        spread_text(of.eval.front(), shown_decimals(sweep)), with_commas(sweep.eval_delays.front()),
        spread_text(of.eval.back(), shown_decimals(sweep)), with_commas(sweep.eval_delays.back()));
  }
  return fmt::format("{}: accuracy in percent by delay, lowest to highest as whiskers. {}",
                     experiment.name, names);
}

std::string delays_svg(const Experiment& experiment) {
  const train::Sweep& sweep = experiment.record.sweep;
  need_delays(sweep);
  std::vector<LegendEntry> entries, of_paper;
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    const std::string& name = sweep.settings[i].name;
    entries.push_back(
        {line_sample(i, true), with_seeds(name, tried(figures(experiment.record, i)))});
    if (sweep.settings[i].paper_eval.empty()) continue;
    of_paper.push_back({line_sample(i, false), "paper, " + name});
  }
  entries.insert(entries.end(), of_paper.begin(), of_paper.end());
  const ChartLegend legend = chart_legend(entries, 50, 8, kDelaysWidth);
  const ChartFrame frame = delay_frame(sweep, legend.height + 16);
  std::string papers, whiskers, ours;
  for (size_t i = 0; i < sweep.settings.size(); ++i) {
    const SettingFigures of = figures(experiment.record, i);
    const double aside =
        kBeside * (static_cast<double>(i) - static_cast<double>(sweep.settings.size() - 1) / 2);
    const auto place = [&](size_t delay, double percent) {
      ChartPoint point = frame.at(static_cast<double>(sweep.eval_delays[delay]), percent);
      point.x += aside;
      return point;
    };
    std::vector<ChartPoint> means, paper;
    for (size_t delay = 0; delay < sweep.eval_delays.size(); ++delay) {
      if (!sweep.settings[i].paper_eval.empty()) {
        paper.push_back(place(delay, sweep.settings[i].paper_eval[delay]));
      }
      const auto& accuracy = of.eval[delay];
      if (!accuracy) continue;
      means.push_back(place(delay, 100 * accuracy->mean));
      whiskers += fmt::format(
          "<path class=\"whisker\" d=\"{}\" {}/>\n",
          path_data({place(delay, 100 * accuracy->low), place(delay, 100 * accuracy->high)}),
          line_look({chart_style(i).colour, ""}, 1.2));
    }
    if (!paper.empty()) papers += marked_line(i, paper, false);
    if (!means.empty()) ours += marked_line(i, means, true);
  }
  std::string content = legend.svg + frame.axes();
  const Measure shown_by = measure(experiment.record);
  if (shown_by.chance) content += frame.level(100 * *shown_by.chance, "chance");
  return chart_document(50 + kDelaysWidth + 14, legend.height + 16 + kDelaysHeight + 48,
                        delays_words(experiment), content + papers + whiskers + ours);
}

}  // namespace hdetach::report
