// The parts of a chart as SVG: a frame with axes, lines, a legend. Positions are pixels, written in
// tenths. All text is escaped here.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hdetach::report {

struct ChartPoint {
  double x, y;
};

struct ChartAxis {
  std::string name;
  double first, last;                                 // the values at its ends
  bool logarithmic = false;                           // both above 0
  std::vector<std::pair<double, std::string>> marks;  // value and label
};

class ChartFrame {
 public:
  ChartFrame(double left, double top, double width, double height, ChartAxis x, ChartAxis y);

  ChartPoint at(double x, double y) const;                     // where a point of these values lies
  std::string axes() const;                                    // grid, marks and names
  std::string level(double y, const std::string& name) const;  // a dotted line all across

 private:
  double left_, top_, width_, height_;
  ChartAxis x_, y_;
};

// Colours that colour-blind readers can tell apart, and dashes that all can in print.
struct ChartStyle {
  const char *colour, *dash;
};
ChartStyle chart_style(size_t index);

// The attributes of a line with this style.
std::string line_look(const ChartStyle& style, double width);

// The data of an SVG path through the points.
std::string path_data(const std::vector<ChartPoint>& points);

// The points that can be told apart: of those in one column of pixels the lowest and the highest.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points);  // from left to right

// Names beside samples of their lines, in as many rows as they need.
struct ChartLegend {
  std::string svg;
  double height;
};
struct LegendEntry {
  std::string sample;  // SVG between x = 0 and kLegendSample, around y = 0
  std::string text;
};
constexpr double kLegendSample = 28;
ChartLegend chart_legend(const std::vector<LegendEntry>& entries, double left, double top,
                         double width);

// A whole picture on white ground, so that it can be read on dark pages too.
std::string chart_document(double width, double height, const std::string& title,
                           const std::string& content);

}  // namespace hdetach::report
