#include "report/documents/curves_picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "report/axis.h"
#include "report/documents/chart.h"
#include "report/documents/result_tables.h"
#include "report/documents/wording.h"

namespace hdetach::report {
namespace {

constexpr double kPictureWidth = 900, kLeftOfFrame = 50, kRightOfFrame = 14, kUnderFrame = 48;

// What all panels of a picture share.
struct CurveAxes {
  ChartAxis x, y;
  std::optional<double> chance;
};

CurveAxes shared_axes(const std::vector<Experiment>& panels) {
  int64_t last = 1;
  Measure shown_by = measure(panels[0].record);
  for (const Experiment& panel : panels) {
    shown_by.top = std::max(shown_by.top, measure(panel.record).top);
    for (const std::vector<RunRecord>& runs : panel.record.runs) {
      for (const RunRecord& run : runs) last = std::max(last, run.epochs.back().epoch);
    }
  }
  CurveAxes axes;
  axes.chance = shown_by.chance;
  axes.x = {"epoch", 0, static_cast<double>(last), false, {}};
  const int64_t step = tick(last, panels.size() > 2 ? 4 : 6);
  for (int64_t at = 0; at <= last; at += step) {
    axes.x.marks.emplace_back(static_cast<double>(at), with_commas(at));
  }
  axes.y = {fmt::format("validation {}{}", shown_by.name, *shown_by.sign == '%' ? ", %" : ""),
            0,
            shown_by.top,
            false,
            {}};
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const double at = shown_by.top * quarter / 4;
    axes.y.marks.emplace_back(at, fmt::format("{:.0f}", 100 * at));
  }
  return axes;
}

// The mean of the runs at the epochs that all of them have.
std::vector<std::pair<int64_t, double>> mean_curve(const std::vector<RunRecord>& runs) {
  std::map<int64_t, std::optional<Spread>> by_epoch;
  for (const RunRecord& run : runs) {
    for (const Epoch& epoch : run.epochs) add(by_epoch[epoch.epoch], epoch.valid_measure);
  }
  std::vector<std::pair<int64_t, double>> out;
  for (const auto& [epoch, spread] : by_epoch) {
    if (spread->count == static_cast<int>(runs.size())) out.emplace_back(epoch, spread->mean);
  }
  return out;
}

std::string curve(const ChartFrame& frame, const std::vector<std::pair<int64_t, double>>& values) {
  std::vector<ChartPoint> points;
  for (const auto& [epoch, value] : values) {
    points.push_back(frame.at(static_cast<double>(epoch), value));
  }
  return path_data(thinned(points));
}

// Settings at the same place of their panels look alike; alone in their panels, each has its own.
ChartStyle style_of(const std::vector<Experiment>& panels, size_t panel, size_t setting) {
  const bool alone = std::all_of(panels.begin(), panels.end(),
                                 [](const Experiment& one) { return one.record.runs.size() == 1; });
  return chart_style(alone ? panel : setting);
}

std::string curves_of(const ChartFrame& frame, const std::vector<Experiment>& panels,
                      size_t place) {
  const Experiment& panel = panels[place];
  std::string thin, thick;
  for (size_t i = 0; i < panel.record.runs.size(); ++i) {
    const ChartStyle style = style_of(panels, place, i);
    for (const RunRecord& run : panel.record.runs[i]) {
      std::vector<std::pair<int64_t, double>> values;
      for (const Epoch& epoch : run.epochs) values.emplace_back(epoch.epoch, epoch.valid_measure);
      thin += fmt::format("<path class=\"run\" d=\"{}\" {} stroke-opacity=\"0.35\"/>\n",
                          curve(frame, values), line_look({style.colour, ""}, 0.9));
    }
    thick += fmt::format("<path class=\"mean\" d=\"{}\" {}/>\n",
                         curve(frame, mean_curve(panel.record.runs[i])), line_look(style, 2.4));
  }
  return thin + thick;
}

}  // namespace

std::string curves_words(const std::vector<Experiment>& panels) {
  std::vector<std::string> means;  // a setting may be in several panels
  for (const Experiment& panel : panels) {
    const train::Sweep& sweep = panel.record.sweep;
    for (size_t i = 0; i < sweep.settings.size(); ++i) {
      const SettingFigures of = figures(panel.record, i);
      const std::string mean =
          fmt::format("{}, {}", with_seeds(sweep.settings[i].name, panel.record.runs[i].size()),
                      times_100(of.best->mean, shown_decimals(sweep)));
      if (std::find(means.begin(), means.end(), mean) == means.end()) means.push_back(mean);
    }
  }
  std::string all;
  for (const std::string& mean : means) all += (all.empty() ? "" : "; ") + mean;
  return fmt::format(
      "{}: validation {} by epoch, runs thin and the mean of a setting thick. Means of the best "
      "epochs: {}",
      panels[0].name, measure(panels[0].record).name, all);
}

std::string curves_svg(const std::vector<Experiment>& panels) {
  const CurveAxes axes = shared_axes(panels);
  const size_t columns = panels.size() <= 3 ? panels.size() : panels.size() == 4 ? 2 : 3;
  const double panel_width = kPictureWidth / static_cast<double>(columns);
  const double frame_width = panel_width - kLeftOfFrame - kRightOfFrame;
  const double frame_height = columns == 1 ? 300 : 240;
  std::vector<std::vector<LegendEntry>> entries;
  double legend_height = 0;
  for (size_t place = 0; place < panels.size(); ++place) {
    const Experiment& panel = panels[place];
    entries.emplace_back();
    for (size_t i = 0; i < panel.record.runs.size(); ++i) {
      entries.back().push_back(
          {fmt::format("<path d=\"m0 0h{}\" {}/>", kLegendSample,
                       line_look(style_of(panels, place, i), 2.4)),
           with_seeds(panel.record.sweep.settings[i].name, panel.record.runs[i].size())});
    }
    legend_height = std::max(legend_height, chart_legend(entries.back(), 0, 0, frame_width).height);
  }
  const double panel_height = 8 + legend_height + 8 + frame_height + kUnderFrame;
  std::string content;
  for (size_t i = 0; i < panels.size(); ++i) {
    const double left = static_cast<double>(i % columns) * panel_width + kLeftOfFrame;
    const double top = static_cast<double>(i / columns) * panel_height + 8;
    ChartAxis y = axes.y;
    if (i % columns > 0) y.name.clear();
    const ChartFrame frame(left, top + legend_height + 8, frame_width, frame_height, axes.x, y);
    content += chart_legend(entries[i], left, top, frame_width).svg + frame.axes();
    if (axes.chance) content += frame.level(*axes.chance, "chance");
    content += curves_of(frame, panels, i);
  }
  const size_t rows = (panels.size() + columns - 1) / columns;
  return chart_document(kPictureWidth, panel_height * static_cast<double>(rows),
                        curves_words(panels), content);
}

}  // namespace hdetach::report
