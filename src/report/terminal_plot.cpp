#include "report/terminal_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/axis.h"

namespace hdetach::report {
namespace {

constexpr int kRows = 13, kWidest = 120, kLabel = 7;  // kLabel: "  75% |"
constexpr char kMarks[] = "o#x+*%=~";                 // one for each setting
constexpr size_t kMost = sizeof(kMarks) - 1;
constexpr char kShared = '@';  // runs of several settings

// The colours of most terminals that stand out on light and on dark ground.
constexpr int kColours[kMost] = {33, 34, 31, 32, 35, 36, 91, 94};

std::string painted(char mark, bool colour) {
  const char* const found = std::find(kMarks, kMarks + kMost, mark);
  if (!colour || found == kMarks + kMost) return std::string(1, mark);
  return fmt::format("\033[{}m{}\033[0m", kColours[found - kMarks], mark);
}

}  // namespace

std::string terminal_plot(const SweepRecord& record, int columns, bool colour) {
  const auto& settings = record.sweep.settings;
  const size_t shown = std::min(settings.size(), kMost);
  int64_t last = 0;
  for (size_t i = 0; i < shown; ++i) {
    for (const RunRecord& run : record.runs[i]) {
      if (!run.epochs.empty()) last = std::max(last, run.epochs.back().epoch);
    }
  }
  if (last == 0) return "";

  const int width = std::clamp(columns, 40, kWidest) - kLabel - 1;
  const auto column = [&](int64_t epoch) {
    return static_cast<int>(std::llround(static_cast<double>(epoch) / last * (width - 1)));
  };
  const Measure shown_by = measure(record);
  std::vector<std::string> canvas(kRows, std::string(width, ' '));
  for (size_t i = 0; i < shown; ++i) {
    for (const RunRecord& run : record.runs[i]) {
      for (const Epoch& epoch : run.epochs) {
        const double height =
            std::clamp(epoch.valid_measure / shown_by.top, 0.0, 1.0) * (kRows - 1);
        char& cell = canvas[kRows - 1 - std::lround(height)][column(epoch.epoch)];
        cell = cell == ' ' || cell == kMarks[i] ? kMarks[i] : kShared;
      }
    }
  }

  std::string out;
  for (int row = 0; row < kRows; ++row) {
    const std::string& marks = canvas[row];
    const double value = 100 * shown_by.top * (kRows - 1 - row) / (kRows - 1);
    out +=
        fmt::format("{:>5} |", row % 3 == 0 ? fmt::format("{:.0f}{}", value, shown_by.sign) : "");
    for (const char mark : marks.substr(0, marks.find_last_not_of(' ') + 1)) {
      out += painted(mark, colour);
    }
    out += '\n';
  }
  const std::string name = " epochs";
  out += fmt::format("      +{}{}\n", std::string(width - name.size(), '-'), name);
  std::string labels(kLabel + width, ' ');
  for (int64_t at = 0; at <= last; at += tick(last, 6)) {
    const std::string label = std::to_string(at);
    const size_t middle = kLabel + column(at) - (label.size() - 1) / 2;
    labels.replace(std::min(middle, labels.size() - label.size()), label.size(), label);
  }
  out += labels + "\n       ";
  size_t used = kLabel;
  for (size_t i = 0; i < shown; ++i) {
    if (used + settings[i].name.size() + 5 > static_cast<size_t>(columns)) {
      out += "\n       ";
      used = kLabel;
    }
    out += fmt::format("{} {}   ", painted(kMarks[i], colour), settings[i].name);
    used += settings[i].name.size() + 5;
  }
  out += fmt::format("{} several", kShared);
  if (shown < settings.size()) {
    out += fmt::format("\n       the first {} of {} settings", shown, settings.size());
  }
  return out + "\n";
}

}  // namespace hdetach::report
