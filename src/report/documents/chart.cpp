#include "report/documents/chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "report/markup.h"

namespace hdetach::report {
namespace {

constexpr double kLetter = 6.7;  // the width of most letters at the size of the text, or less
constexpr double kLegendRow = 18;

int64_t tenths(double pixels) { return std::llround(10 * pixels); }

// Without ".0": most of a picture's bytes are coordinates.
std::string tenths_text(int64_t value) {
  if (value % 10 == 0) return std::to_string(value / 10);
  return fmt::format("{}{}.{}", value < 0 ? "-" : "", std::abs(value) / 10, std::abs(value) % 10);
}

std::string px(double pixels) { return tenths_text(tenths(pixels)); }

double share(const ChartAxis& axis, double value) {
  if (!axis.logarithmic) return (value - axis.first) / (axis.last - axis.first);
  return std::log(value / axis.first) / std::log(axis.last / axis.first);
}

}  // namespace

ChartFrame::ChartFrame(double left, double top, double width, double height, ChartAxis x,
                       ChartAxis y)
    : left_(left), top_(top), width_(width), height_(height), x_(std::move(x)), y_(std::move(y)) {}

ChartPoint ChartFrame::at(double x, double y) const {
  return {left_ + width_ * share(x_, x), top_ + height_ * (1 - share(y_, y))};
}

std::string ChartFrame::axes() const {
  std::string lines, labels;
  const double bottom = top_ + height_, right = left_ + width_;
  for (const auto& [value, label] : x_.marks) {
    const std::string x = px(at(value, y_.first).x);
    lines += fmt::format("M{} {}V{}", x, px(top_), px(bottom));
    labels += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x,
                          px(bottom + 16), escaped(label));
  }
  for (const auto& [value, label] : y_.marks) {
    const double y = at(x_.first, value).y;
    lines += fmt::format("M{} {}H{}", px(left_), px(y), px(right));
    labels += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", px(left_ - 6),
                          px(y + 4), escaped(label));
  }
  labels += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        px(left_ + width_ / 2), px(bottom + 33), escaped(x_.name));
  if (!y_.name.empty()) {
    labels += fmt::format(
        "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        px(left_ - 36), px(top_ + height_ / 2), escaped(y_.name));
  }
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"#ddd\"/>\n"
      "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#555\"/>\n{}",
      lines, px(left_), px(top_), px(bottom), px(right), labels);
}

std::string ChartFrame::level(double y, const std::string& name) const {
  const double at_y = at(x_.first, y).y, right = left_ + width_;
  return fmt::format(
      "<path d=\"M{} {}H{}\" fill=\"none\" stroke=\"#555\" stroke-dasharray=\"2 4\"/>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"10\" fill=\"#555\">{}</text>\n",
      px(left_), px(at_y), px(right), px(right - 3), px(at_y + 11), escaped(name));
}

ChartStyle chart_style(size_t index) {
  // The colours of Okabe and Ito, those first that stand out on white.
  constexpr const char* kLineColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#000000"};
  constexpr const char* kDashes[] = {"", "9 3", "3 2", "9 3 3 3"};
  return {kLineColours[index % std::size(kLineColours)], kDashes[index % std::size(kDashes)]};
}

std::string line_look(const ChartStyle& style, double width) {
  const std::string dash = style.dash;
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}", style.colour, px(width),
                     dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash));
}

std::string path_data(const std::vector<ChartPoint>& points) {
  std::string out;
  int64_t last_x = 0, last_y = 0;
  for (const ChartPoint& point : points) {
    // Steps from the rounded place before, so that roundings do not add up.
    const int64_t x = tenths(point.x), y = tenths(point.y);
    out += fmt::format("{}{} {}", out.empty() ? "m" : " ", tenths_text(x - last_x),
                       tenths_text(y - last_y));
    last_x = x;
    last_y = y;
  }
  return out;
}

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points) {
  const auto lower = [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; };
  std::vector<ChartPoint> out;
  for (auto from = points.begin(); from != points.end();) {
    const auto to = std::find_if(from, points.end(), [&](const ChartPoint& point) {
      return std::floor(point.x) != std::floor(from->x);
    });
    auto [first, second] = std::minmax_element(from, to, lower);
    if (second < first) std::swap(first, second);
    out.push_back(*first);
    if (second != first) out.push_back(*second);
    from = to;
  }
  return out;
}

ChartLegend chart_legend(const std::vector<LegendEntry>& entries, double left, double top,
                         double width) {
  ChartLegend out{"", kLegendRow};
  double x = 0;
  for (const LegendEntry& entry : entries) {
    const double needed = kLegendSample + 6 + kLetter * static_cast<double>(entry.text.size());
    if (x > 0 && x + needed > width) {
      x = 0;
      out.height += kLegendRow;
    }
    out.svg +=
        fmt::format("<g transform=\"translate({} {})\">{}<text x=\"{}\" y=\"4\">{}</text></g>\n",
                    px(left + x), px(top + out.height - kLegendRow / 2), entry.sample,
                    px(kLegendSample + 6), escaped(entry.text));
    x += needed + 14;
  }
  return out;
}

std::string chart_document(double width, double height, const std::string& title,
                           const std::string& content) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" "
      "fill=\"#222\">\n<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "{3}</svg>\n",
      px(width), px(height), escaped(title), content);
}

}  // namespace hdetach::report
