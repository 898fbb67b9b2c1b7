#include "report/page.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/axis.h"
#include "report/markup.h"
#include "report/summary.h"

namespace hdetach::report {
namespace {

constexpr size_t kColours = 8;

constexpr const char* kStyle = R"(<style>
:root { color-scheme: light dark; }
.s0 { --line: #c2410c } .s1 { --line: #1d4ed8 } .s2 { --line: #15803d } .s3 { --line: #7e22ce }
.s4 { --line: #be123c } .s5 { --line: #0e7490 } .s6 { --line: #a16207 } .s7 { --line: #475569 }
@media (prefers-color-scheme: dark) {
.s0 { --line: #fb923c } .s1 { --line: #7ab0ff } .s2 { --line: #4ade80 } .s3 { --line: #c084fc }
.s4 { --line: #fb7185 } .s5 { --line: #22d3ee } .s6 { --line: #facc15 } .s7 { --line: #94a3b8 }
}
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; } svg text { font-size: 13px; fill: currentColor; }
polyline { fill: none; stroke: var(--line); stroke-width: 1; opacity: .55; }
polyline.mean { stroke-width: 3; opacity: 1; }
.grid { stroke: currentColor; opacity: .15; }
.chance { stroke: currentColor; opacity: .5; stroke-dasharray: 4 4; }
.name { color: var(--line); font-weight: bold; }
table { border-collapse: collapse; } th, td { padding: .2rem 1rem .2rem 0; text-align: right; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; } thead th { border-bottom: 1px solid; }
.scroll { overflow-x: auto; }
</style>
)";

// The mean accuracy of a setting's runs, epoch by epoch, as far as all that have begun reach.
std::vector<double> mean_curve(const std::vector<RunRecord>& runs) {
  std::vector<double> mean;
  double count = 0;
  for (const RunRecord& run : runs) {
    if (run.epochs.empty()) continue;
    if (count == 0) mean.resize(run.epochs.size());
    mean.resize(std::min(mean.size(), run.epochs.size()));
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += run.epochs[i].valid_measure;
    ++count;
  }
  for (double& accuracy : mean) accuracy /= count;
  return mean;
}

class Chart {
 public:
  explicit Chart(const SweepRecord& record) : record_(record), measure_(measure(record)) {
    for (const auto& runs : record.runs) {
      for (const RunRecord& run : runs) {
        if (!run.epochs.empty()) last_ = std::max(last_, run.epochs.back().epoch);
      }
    }
  }

  std::string svg() {
    out_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", kWidth, kHeight);
    out_ += fmt::format("<title>Validation {} against epochs</title>\n", measure_.name);
    for (int quarter = 0; quarter <= 4; ++quarter) {
      const double value = quarter * measure_.top / 4;
      rule(value, "grid");
      label(kLeft - 8, y(value) + 4, "end", fmt::format("{:.0f}{}", 100 * value, measure_.sign));
    }
    if (record_.sweep.task != "caption") {
      const double chance = record_.sweep.task == "copy" ? 1.0 / 8 : 1.0 / 10;  // symbols, digits
      rule(chance, "chance");
      label(kWidth - kRight, y(chance) + 14, "end", "chance");
    }
    for (int64_t at = 0; at <= last_; at += tick(last_, 6)) {
      label(x(at), kHeight - kBottom + 18, "middle", std::to_string(at));
    }
    label((kLeft + kWidth - kRight) / 2.0, kHeight - 8, "middle", "epochs");
    for (size_t i = 0; i < record_.runs.size(); ++i) curves(i);
    return out_ + "</svg>\n";
  }

 private:
  static constexpr int kWidth = 860, kHeight = 420, kLeft = 56, kRight = 16, kTop = 16,
                       kBottom = 48;

  double x(double epoch) const { return kLeft + epoch / last_ * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - value / measure_.top * (kHeight - kTop - kBottom);
  }

  void rule(double value, const char* kind) {
    out_ +=
        fmt::format("<line class=\"{0}\" x1=\"{1}\" y1=\"{2:.1f}\" x2=\"{3}\" y2=\"{2:.1f}\"/>\n",
                    kind, kLeft, y(value), kWidth - kRight);
  }

  void label(double at_x, double at_y, const char* anchor, const std::string& text) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x,
                        at_y, anchor, text);
  }

  void curves(size_t setting) {
    const std::string name = escaped(record_.sweep.settings[setting].name);
    const size_t colour = setting % kColours;
    for (size_t s = 0; s < record_.runs[setting].size(); ++s) {
      out_ += fmt::format("<polyline class=\"s{}\" points=\"", colour);
      for (const Epoch& epoch : record_.runs[setting][s].epochs) {
        out_ += fmt::format("{:.1f},{:.1f} ", x(epoch.epoch), y(epoch.valid_measure));
      }
      out_ +=
          fmt::format("\"><title>{}, seed {}</title></polyline>\n", name, record_.sweep.seeds[s]);
    }
    out_ += fmt::format("<polyline class=\"mean s{}\" points=\"", colour);
    const std::vector<double> mean = mean_curve(record_.runs[setting]);
    for (size_t i = 0; i < mean.size(); ++i) {
      out_ += fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(i + 1)), y(mean[i]));
    }
    out_ += fmt::format("\"><title>{}, mean</title></polyline>\n", name);
  }

  const SweepRecord& record_;
  const Measure measure_;
  int64_t last_ = 1;
  std::string out_;
};

std::string legend(const SweepRecord& record) {
  std::string out = "<p>";
  for (size_t i = 0; i < record.sweep.settings.size(); ++i) {
    out += fmt::format("<span class=\"name s{}\">{}</span> &nbsp; ", i % kColours,
                       escaped(record.sweep.settings[i].name));
  }
  return out + "thin: every run; thick: their mean, as far as all of them reach</p>\n";
}

std::string state(const RunRecord& run) {
  if (run.result) return run.result->status;
  return run.epochs.empty() ? "not begun" : "not over";
}

std::string or_dash(const std::optional<double>& accuracy) {
  return accuracy ? percent(*accuracy) : "-";
}

std::string run_table(const SweepRecord& record) {
  const Measure shown_by = measure(record);
  std::string out = fmt::format(
      "<div class=\"scroll\"><table><thead><tr><th>setting<th>seed<th>state<th>epochs"
      "<th>best, {0}<th>at epoch<th>last 20, {0}<th>epochs to {1:g}{2}<th>test, {0}"
      "<th>largest gradient<th>time</tr></thead>\n",
      *shown_by.sign ? shown_by.sign : shown_by.name, 100 * record.sweep.threshold, shown_by.sign);
  for (size_t i = 0; i < record.runs.size(); ++i) {
    for (size_t s = 0; s < record.runs[i].size(); ++s) {
      const RunRecord& run = record.runs[i][s];
      const Epoch *best = best_epoch(run), *first = first_epoch_at(run, record.sweep.threshold);
      const auto norm = largest_grad_norm(run);
      out += fmt::format("<tr><td class=\"name s{}\">{}<td>{}<td title=\"{}\">{}<td>{}",
                         i % kColours, escaped(record.sweep.settings[i].name),
                         record.sweep.seeds[s], run.result ? escaped(run.result->message) : "",
                         escaped(state(run)), run.epochs.empty() ? 0 : run.epochs.back().epoch);
      out += fmt::format("<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>\n",
                         best ? percent(best->valid_measure) : "-",
                         best ? std::to_string(best->epoch) : "-", or_dash(late_accuracy(run)),
                         first ? std::to_string(first->epoch) : "-",
                         run.result ? or_dash(run.result->test_measure) : "-",
                         norm ? short_number(*norm) : "-", duration(seconds(run)));
    }
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string page(const SweepRecord& record, const std::vector<std::string>& about) {
  const std::string title = escaped(record.sweep.folder);
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += fmt::format("<title>hdetach: {}</title>\n{}<h1>{}</h1>\n", title, kStyle, title);
  for (const std::string& line : about) out += "<p>" + escaped(line) + "</p>\n";
  out += Chart(record).svg() + legend(record);
  out += "<h2>Settings</h2>\n<pre class=\"scroll\">" + escaped(summary_text(record)) + "</pre>\n";
  out += "<h2>Runs</h2>\n" + run_table(record);
  out +=
      fmt::format("<h2>Configuration</h2>\n<p>What differs from the defaults of hdetach train {}:",
                  escaped(record.sweep.task));
  out += "</p>\n<pre class=\"scroll\">";
  for (const train::SweepSetting& setting : record.sweep.settings) {
    out += escaped(setting.name + ": " + train::changed_flags(setting.config)) + "\n";
  }
  return out + "</pre>\n</html>\n";
}

}  // namespace hdetach::report
