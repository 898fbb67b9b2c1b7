#include "copying_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace {

constexpr double kSolved = 0.99;
constexpr double kChance = 1.0 / 8;  // eight data symbols

std::string name(const Curve& curve) {
  return curve.detach == 0 ? "plain" : fmt::format("h-detach {:g}", curve.detach);
}

double best(const Curve& curve) {
  double accuracy = 0;
  for (const Point& point : curve.points) accuracy = std::max(accuracy, point.accuracy);
  return accuracy;
}

double last(const Curve& curve) { return curve.points.empty() ? 0 : curve.points.back().accuracy; }

int64_t updates(const Curve& curve) {
  return curve.points.empty() ? 0 : curve.points.back().updates;
}

// Of the largest gradient norms of all points, the one in the middle (0.5) or the largest (1).
double grad_norm(const Curve& curve, double quantile) {
  std::vector<double> norms;
  for (const Point& point : curve.points) norms.push_back(point.grad_norm);
  if (norms.empty()) return 0;
  std::sort(norms.begin(), norms.end());
  return norms[static_cast<size_t>(quantile * (norms.size() - 1))];
}

std::string updates_to_solved(const Curve& curve) {
  for (const Point& point : curve.points) {
    if (point.accuracy >= kSolved) return fmt::format("{}", point.updates);
  }
  return "-";
}

int64_t longest(const std::vector<Curve>& curves) {
  int64_t most = 1;
  for (const Curve& curve : curves) most = std::max(most, updates(curve));
  return most;
}

// The distance between the marks of an axis: 1, 2 or 5 times a power of ten, at most six marks.
int64_t tick(int64_t range) {
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t step : {power, 2 * power, 5 * power}) {
      if (range / step <= 6) return step;
    }
  }
}

std::string svg(const std::vector<Curve>& curves) {
  const int width = 760, height = 380, left = 56, right = 16, top = 16, bottom = 48;
  const double most = longest(curves);
  const auto x = [&](double value) { return left + value / most * (width - left - right); };
  const auto y = [&](double accuracy) {
    return height - bottom - accuracy * (height - top - bottom);
  };
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", width, height);
  out += "<title>Accuracy on held-out sequences against updates, one line for each run</title>\n";
  const auto rule = [&](double from_x, double from_y, double to_x, double to_y, const char* kind) {
    out += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind,
        from_x, from_y, to_x, to_y);
  };
  const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y,
                       anchor, text);
  };
  for (int percent = 0; percent <= 100; percent += 25) {
    rule(left, y(percent / 100.0), width - right, y(percent / 100.0), "grid");
    label(left - 8, y(percent / 100.0) + 4, "end", fmt::format("{}%", percent));
  }
  rule(left, y(kChance), width - right, y(kChance), "chance");
  label(width - right, y(kChance) + 14, "end", "chance");
  for (int64_t at = 0; at <= most; at += tick(longest(curves))) {
    label(x(at), height - bottom + 18, "middle", fmt::format("{}", at));
  }
  label((left + width - right) / 2.0, height - 8, "middle", "updates");
  for (const Curve& curve : curves) {
    out += fmt::format("<polyline class=\"{}\" points=\"", curve.detach == 0 ? "plain" : "detach");
    for (const Point& point : curve.points) {
      out += fmt::format("{:.1f},{:.1f} ", x(point.updates), y(point.accuracy));
    }
    out += fmt::format("\"><title>{}, seed {}</title></polyline>\n", name(curve), curve.seed);
  }
  return out + "</svg>\n";
}

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>hdetach demo</title>
<style>
:root { color-scheme: light dark; --plain: #c2410c; --detach: #1d4ed8; }
@media (prefers-color-scheme: dark) { :root { --plain: #fb923c; --detach: #7ab0ff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; } svg text { font-size: 13px; fill: currentColor; }
polyline { fill: none; stroke-width: 2; }
polyline.plain { stroke: var(--plain); } polyline.detach { stroke: var(--detach); }
.grid { stroke: currentColor; opacity: .15; }
.chance { stroke: currentColor; opacity: .5; stroke-dasharray: 4 4; }
td.plain { color: var(--plain); } td.detach { color: var(--detach); }
table { border-collapse: collapse; } th, td { padding: .2rem 1rem .2rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 1px solid; }
.scroll { overflow-x: auto; }
</style>
<h1>A plain LSTM and h-detach on the copying task</h1>
)";

std::string html(const std::vector<std::string>& about, const std::vector<Curve>& curves) {
  std::string out = kHead;
  out += "<pre class=\"scroll\">" + summary(curves) + "</pre>\n" + svg(curves);
  out +=
      "<div class=\"scroll\"><table><thead><tr><th>setting<th>seed<th>updates<th>updates to 99%"
      "<th>best<th>last<th>gradient norm, median of peaks<th>largest</tr></thead>\n";
  for (const Curve& curve : curves) {
    out += fmt::format(
        "<tr><td "
        "class=\"{}\">{}<td>{}<td>{}<td>{}<td>{:.1f}%<td>{:.1f}%<td>{:.3g}<td>{:.3g}</tr>\n",
        curve.detach == 0 ? "plain" : "detach", name(curve), curve.seed, updates(curve),
        updates_to_solved(curve), 100 * best(curve), 100 * last(curve), grad_norm(curve, 0.5),
        grad_norm(curve, 1));
  }
  out += "</table></div>\n";
  for (const std::string& line : about) out += "<p>" + line + "</p>\n";
  return out + "</html>\n";
}

std::string jsonl(const std::vector<Curve>& curves) {
  const auto number = [](double value) {  // JSON has no NaN and no infinity
    return std::isfinite(value) ? fmt::format("{}", value) : std::string("null");
  };
  std::string out;
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      out += fmt::format(
          "{{\"detach\":{},\"seed\":{},\"updates\":{},\"train_loss\":{},\"valid_accuracy\":{},"
          "\"grad_norm_max\":{}}}\n",
          curve.detach, curve.seed, point.updates, number(point.loss), number(point.accuracy),
          number(point.grad_norm));
    }
  }
  return out;
}

void write(const std::filesystem::path& path, const std::string& text) {
  const std::string temporary = path.string() + ".tmp";
  std::ofstream file(temporary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + temporary);
  std::filesystem::rename(temporary, path);
}

}  // namespace

std::string table(const std::vector<Curve>& curves) {
  std::string out = "setting         seed  updates     loss  accuracy\n";
  for (const Curve& curve : curves) {
    out +=
        fmt::format("{:<14}  {:>4}  {:>7}  {:>7.4f}  {:>7.1f}%  {:<25}\n", name(curve), curve.seed,
                    updates(curve), curve.points.empty() ? 0.0 : curve.points.back().loss,
                    100 * last(curve), std::string(std::lround(25 * last(curve)), '#'));
  }
  return out;
}

std::string progress_line(const std::vector<Curve>& curves) {
  int64_t least = longest(curves);
  for (const Curve& curve : curves) least = std::min(least, updates(curve));
  std::string out = fmt::format("{:>6} updates", least);
  for (size_t i = 0; i < curves.size(); ++i) {
    if (i == 0 || curves[i].detach != curves[i - 1].detach) out += "  " + name(curves[i]);
    out += fmt::format(" {:.0f}%", 100 * last(curves[i]));
  }
  return out + "\n";
}

std::string plot(const std::vector<Curve>& curves) {
  const int rows = 13, columns = 64;
  std::vector<std::string> canvas(rows, std::string(columns, ' '));
  const int64_t most = longest(curves);
  for (const Curve& curve : curves) {
    for (const Point& point : curve.points) {
      const double height = std::clamp(point.accuracy, 0.0, 1.0) * (rows - 1);
      char& cell = canvas[rows - 1 - std::lround(height)][point.updates * (columns - 1) / most];
      const char mark = curve.detach == 0 ? 'o' : '#';
      cell = cell == ' ' || cell == mark ? mark : '@';
    }
  }
  std::string out;
  for (int row = 0; row < rows; ++row) {
    const bool labelled = row % 3 == 0;
    out += fmt::format("{:>5} |{}\n", labelled ? fmt::format("{}%", 100 - 25 * row / 3) : "",
                       canvas[row]);
  }
  out += fmt::format("      +{}\n       0{:>{}}\n", std::string(columns, '-'),
                     fmt::format("{} updates", most), columns - 1);
  return out + "       o plain   # h-detach   @ both   (chance is 12.5%)\n";
}

std::string summary(const std::vector<Curve>& curves) {
  std::string out;
  for (size_t i = 0; i < curves.size();) {
    const size_t first = i;
    int solved = 0;
    double sum = 0, low = 1, high = 0;
    for (; i < curves.size() && curves[i].detach == curves[first].detach; ++i) {
      const double accuracy = best(curves[i]);
      solved += accuracy >= kSolved;
      sum += accuracy;
      low = std::min(low, accuracy);
      high = std::max(high, accuracy);
    }
    out += fmt::format("{:<14} best accuracy {:.1f}% (mean; {:.1f}% to {:.1f}%), {} of {} at 99%\n",
                       name(curves[first]), 100 * sum / (i - first), 100 * low, 100 * high, solved,
                       i - first);
  }
  return out;
}

void write_report(const std::string& folder, const std::vector<std::string>& about,
                  const std::vector<Curve>& curves) {
  write(std::filesystem::path(folder) / "demo.jsonl", jsonl(curves));
  write(std::filesystem::path(folder) / "demo.html", html(about, curves));
}
