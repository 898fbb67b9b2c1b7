#include "cli/sweep_view.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/output.h"
#include "report/summary.h"

namespace hdetach::cli {
namespace {

using Stage = SweepJob::Stage;

constexpr double kRepaintSeconds = 0.5;
// Lines come more rarely in a long sweep, so that a day's log can still be read.
constexpr double kLinesSeconds = 5, kLinesSecondsMost = 60;

double since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

bool ended(const SweepJob& job) { return job.stage == Stage::kDone || job.stage == Stage::kFailed; }

bool running(const SweepJob& job) {
  return job.stage == Stage::kTraining || job.stage == Stage::kEvaluating;
}

}  // namespace

TerminalSize terminal_size(FILE* stream) {
  winsize size = {};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

std::string progress(const report::RunRecord& record, const train::Config& config) {
  const int64_t done = record.epochs.empty() ? 0 : record.epochs.back().epoch;
  std::string out = fmt::format("{} of {} epochs", done, config.epochs);
  if (record.result) out = fmt::format("{}, {} epochs", record.result->status, done);
  if (!record.result && done == 0) return "new";
  if (const report::Epoch* best = report::best_epoch(record)) {
    const bool captions = config.task == "caption";
    out += fmt::format(", best {}{}{} at epoch {}", captions ? "CIDEr " : "",
                       report::percent(best->valid_measure), captions ? "" : "%", best->epoch);
  }
  return out;
}

SweepView::SweepView(FILE* stream, const SweepJobs& jobs)
    : stream_(stream),
      jobs_(jobs),
      terminal_(isatty(fileno(stream)) == 1),
      start_(std::chrono::steady_clock::now()) {
  for (const SweepJob& job : jobs.all()) {
    name_width_ = std::max(name_width_, job.run.name.size());
    updates_at_start_ += job.updates();
    told_.push_back(ended(job));
  }
}

std::string SweepView::status(bool ending) const {
  const size_t failed = jobs_.count(Stage::kFailed);
  const size_t active = jobs_.count(Stage::kTraining) + jobs_.count(Stage::kEvaluating);
  std::string out =
      fmt::format("{} of {} runs over, {} running, {} waiting", jobs_.count(Stage::kDone) + failed,
                  jobs_.all().size(), active, jobs_.count(Stage::kWaiting));
  if (failed > 0) out += fmt::format(", {} failed", failed);
  const double seconds = since(start_);
  out += fmt::format("; {}", report::duration(seconds));
  if (ending) return out + "; ending, the runs save";
  int64_t done = -updates_at_start_, left = 0;
  for (const SweepJob& job : jobs_.all()) {
    done += job.updates();
    left += job.updates_left();
  }
  if (done > 0 && left > 0) {
    const double rate = static_cast<double>(done) / seconds;
    out += fmt::format(", about {} left", report::duration(static_cast<double>(left) / rate));
  }
  return out;
}

std::string SweepView::row(const SweepJob& job) const {
  std::string state = progress(job.record, job.run.config);
  if (job.stage == Stage::kFailed)
    state = "failed: " + job.problem.substr(0, job.problem.find('\n'));
  if (job.stage == Stage::kDone && job.ended_by != 0) {
    state += fmt::format(", started again after {}", signal_name(job.ended_by));
  }
  if (job.stage == Stage::kEvaluating) state = "evaluating";
  if (job.stage == Stage::kWaiting) state = state == "new" ? "waiting" : "waiting: " + state;
  if (job.stage == Stage::kTraining) {
    const std::vector<std::string> lines = last_lines(job.log(), 1);
    state = lines.empty() ? "starting" : lines[0];
  }
  return fmt::format("{:<{}}  {}", job.run.name, name_width_, state);
}

// What runs comes first, then what ended badly, what waits and what is done, as far as there are
// rows.
void SweepView::paint(bool ending) {
  const TerminalSize size = terminal_size(stream_);
  std::vector<std::string> rows;
  for (const Stage stage :
       {Stage::kTraining, Stage::kEvaluating, Stage::kFailed, Stage::kWaiting, Stage::kDone}) {
    for (const SweepJob& job : jobs_.all()) {
      if (job.stage == stage) rows.push_back(row(job));
    }
  }
  const size_t most = std::max(1, size.rows - 3);
  if (rows.size() > most) {
    const size_t hidden = rows.size() - most + 1;
    rows.resize(most - 1);
    rows.push_back(fmt::format("and {} more", hidden));
  }
  rows.push_back(status(ending));
  std::string out = painted_rows_ > 0 ? fmt::format("\033[{}A", painted_rows_) : "";
  for (const std::string& text : rows) {
    out += fmt::format("\r\033[K{}\n", text.substr(0, size.columns - 1));
  }
  out += "\033[J";
  print(stream_, "{}", out);
  flush(stream_);
  painted_rows_ = static_cast<int>(rows.size());
}

void SweepView::print_ended() {
  for (size_t i = 0; i < told_.size(); ++i) {
    const SweepJob& job = jobs_.all()[i];
    if (told_[i] || !ended(job)) continue;
    told_[i] = true;
    print(stream_, "{}\n", row(job));
  }
}

void SweepView::print_lines(bool ending) {
  for (const SweepJob& job : jobs_.all()) {
    if (running(job)) print(stream_, "{}\n", row(job));
  }
  print(stream_, "{}\n", status(ending));
}

void SweepView::show(bool ending) {
  const double seconds = since(start_);
  const double period =
      terminal_ ? kRepaintSeconds : std::clamp(seconds / 20, kLinesSeconds, kLinesSecondsMost);
  if (!terminal_) print_ended();
  if (since(shown_) >= period && (terminal_ || seconds >= period)) {
    shown_ = std::chrono::steady_clock::now();
    terminal_ ? paint(ending) : print_lines(ending);
  }
  flush(stream_);
}

void SweepView::close() {
  if (terminal_) {
    paint(false);
  } else {
    print_ended();
    print(stream_, "{}\n", status(false));
  }
}

}  // namespace hdetach::cli
