#include "cli/report_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "cli/machine.h"
#include "cli/output.h"
#include "cli/version.h"
#include "report/page.h"
#include "report/page_data.h"

namespace hdetach::cli {
namespace {

constexpr size_t kNoticesPrinted = 10;

std::string page_title(const report::Experiments& experiments) {
  constexpr size_t kNamed = 3;
  if (experiments.all.size() > kNamed) {
    return fmt::format("{} experiments", experiments.all.size());
  }
  std::string title;
  for (const report::Experiment& experiment : experiments.all) {
    title += (title.empty() ? "" : ", ") + experiment.name;
  }
  return title.empty() ? "no runs" : title;
}

// A file's name may hold bytes that a terminal obeys.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return text;
}

}  // namespace

std::string report_data(const report::Experiments& experiments, const std::string& command,
                        bool watching) {
  return report::page_data(
      experiments, {page_title(experiments),
                    {command, fmt::format("hdetach {} ({}), {}", version(), commit(), cpu_model())},
                    report::utc_time_now(),
                    watching});
}

void need_page() {
  const std::string reason = report::no_page_reason();
  if (!reason.empty()) throw std::runtime_error("this hdetach has no page: " + reason);
}

void need_runs(const report::Experiments& experiments,
               const std::vector<std::filesystem::path>& folders) {
  if (!experiments.all.empty()) return;
  std::string names;
  for (const auto& folder : folders) names += (names.empty() ? "" : ", ") + folder.string();
  std::string message = fmt::format(
      "no run found in {}: a run's folder holds config.toml; hdetach train and hdetach sweep make "
      "them",
      names);
  for (const std::string& notice : experiments.notices.all()) message += ". " + notice;
  throw std::runtime_error(printable(message));
}

void print_notices(const report::Notices& notices) {
  const std::vector<std::string>& all = notices.all();
  for (size_t i = 0; i < std::min(all.size(), kNoticesPrinted); ++i) {
    print(stderr, "hdetach: notice: {}\n", printable(all[i]));
  }
  if (all.size() > kNoticesPrinted) {
    print(stderr, "hdetach: {} more notices\n", all.size() - kNoticesPrinted);
  }
}

}  // namespace hdetach::cli
