#include "cli/sweep_jobs.h"

#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "formats/files.h"
#include "train/group_key.h"
#include "train/run_history.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;
using Stage = SweepJob::Stage;

constexpr std::chrono::milliseconds kPoll(100), kReadEvery(1000);
constexpr size_t kShownLogLines = 5;

fs::path evaluation_output(const fs::path& folder) { return folder / "eval.partial"; }

// A run that is there must be the one that the sweep asks for.
void check_settings(const SweepJob& job) {
  if (!job.record.config) return;
  const std::string found = train::differences(job.run.config, *job.record.config);
  if (found.empty()) return;
  throw std::runtime_error(
      fmt::format("{} was trained with other settings: {}; put them back, move the folder away, or "
                  "name another place by --out",
                  job.run.folder.string(), found));
}

bool evaluated(const SweepJob& job) {
  const std::vector<int64_t>& delays = job.run.eval_delays;
  return std::all_of(delays.begin(), delays.end(), [&](int64_t delay) {
    return report::accuracy_at(job.record, delay).has_value();
  });
}

std::string joined(const std::vector<int64_t>& numbers) {
  std::string out;
  for (const int64_t number : numbers) out += fmt::format("{}{}", out.empty() ? "" : ",", number);
  return out;
}

}  // namespace

int64_t SweepJob::updates() const {
  return record.epochs.empty() ? 0 : record.epochs.back().update;
}

int64_t SweepJob::updates_left() const {
  if (record.result || stage == Stage::kFailed) return 0;
  int64_t per_epoch = run.config.updates_per_epoch;
  // A pass over the data: known from the first epoch on.
  if (per_epoch == 0 && !record.epochs.empty()) per_epoch = updates() / record.epochs.back().epoch;
  return run.config.epochs * per_epoch - updates();
}

std::vector<std::string> last_lines(const fs::path& path, size_t count) {
  constexpr std::streamoff kMost = 8192;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, size - kMost));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::remove_if(line.begin(), line.end(), [](unsigned char c) { return c < ' '; }),
               line.end());
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - count);
  return lines;
}

std::string signal_name(int number) {
  return fmt::format("signal {} ({})", number, strsignal(number));
}

SweepJobs::SweepJobs(std::vector<PlannedRun> runs)
    : program_(fs::read_symlink("/proc/self/exe").string()) {
  for (PlannedRun& run : runs) {
    SweepJob job{std::move(run), {}};
    try {
      job.record = report::read_run(job.run.folder);
      if (job.record.result) train::check_run(job.run.folder);  // before it counts as done
      settle(job);
    } catch (const std::exception& damage) {
      job.stage = Stage::kFailed;
      job.problem = damage.what();
    }
    check_settings(job);
    jobs_.push_back(std::move(job));
  }
}

size_t SweepJobs::count(Stage stage) const {
  return std::count_if(jobs_.begin(), jobs_.end(),
                       [&](const SweepJob& job) { return job.stage == stage; });
}

void SweepJobs::settle(SweepJob& job) {
  if (report::diverged(job.record)) {
    job.stage = Stage::kFailed;
    job.problem = "diverged: " + job.record.result->message;
  } else {
    job.stage = job.record.result && evaluated(job) ? Stage::kDone : Stage::kWaiting;
  }
}

train::ChildCommand SweepJobs::evaluation(SweepJob& job) const {
  train::ChildCommand command;
  command.arguments = {
      program_, "eval", job.run.folder.string(), "--delay", joined(job.run.eval_delays), "--json"};
  command.log = job.log();
  command.output = evaluation_output(job.run.folder);
  job.stage = Stage::kEvaluating;
  return command;
}

train::ChildCommand SweepJobs::training(const std::vector<size_t>& indices) {
  train::ChildCommand command;
  command.log = jobs_[indices[0]].log();
  command.arguments = {program_, "train"};
  if (indices.size() > 1) command.arguments.push_back("together");
  for (const size_t i : indices) {
    SweepJob& job = jobs_[i];
    fs::remove(job.run.folder / "eval.json");  // of an earlier model
    const std::string config = job.run.folder.string() + ".toml", out = job.run.folder.string();
    files::write_regular(config, train::to_toml(job.run.config));
    if (indices.size() > 1) {
      command.arguments.push_back(config);
    } else {
      command.arguments.insert(command.arguments.end(),
                               {job.run.config.task, "--config", config, "--out", out, "--resume"});
    }
    job.stage = Stage::kTraining;
  }
  return command;
}

void SweepJobs::start(const std::vector<size_t>& indices, int threads) {
  SweepJob& first = jobs_[indices[0]];
  for (const size_t i : indices) files::make_folder(jobs_[i].run.folder);
  train::ChildCommand command = first.record.result ? evaluation(first) : training(indices);
  command.threads = threads;
  command.arguments.insert(command.arguments.end(), {"--threads", std::to_string(threads)});
  children_.start(started_.size(), command);
  started_.push_back(indices);
}

// The job itself, and those that can train in the same child.
std::vector<size_t> SweepJobs::beside(size_t index, int replicas) const {
  std::vector<size_t> out = {index};
  const SweepJob& job = jobs_[index];
  if (job.record.result || job.run.config.device != "cuda") return out;
  const std::string key = train::group_key(job.run.config);
  for (size_t i = 0; i < jobs_.size() && out.size() < static_cast<size_t>(replicas); ++i) {
    const SweepJob& other = jobs_[i];
    if (i != index && other.stage == Stage::kWaiting && !other.record.result &&
        train::group_key(other.run.config) == key) {
      out.push_back(i);
    }
  }
  return out;
}

// Evaluations first, then the runs in their order. False when nothing waits.
bool SweepJobs::start_next(const Limits& limits) {
  size_t next = jobs_.size();
  for (size_t i = jobs_.size(); i-- > 0;) {
    const bool better =
        next == jobs_.size() || jobs_[i].record.result || !jobs_[next].record.result;
    if (jobs_[i].stage == Stage::kWaiting && better) next = i;
  }
  if (next == jobs_.size()) return false;
  const std::vector<size_t> indices = beside(next, limits.replicas);
  try {
    start(indices, limits.threads);
  } catch (const std::exception& error) {
    for (const size_t i : indices) {
      jobs_[i].stage = Stage::kFailed;
      jobs_[i].problem = error.what();
    }
  }
  return true;
}

void SweepJobs::store_evaluation(const SweepJob& job) const {
  const fs::path output = evaluation_output(job.run.folder);
  files::write_regular(job.run.folder / "eval.json", files::read(output));
  fs::remove(output);
}

void SweepJobs::end(SweepJob& job, int exit_code, bool asked) {
  const bool evaluating = job.stage == Stage::kEvaluating;
  job.stage = Stage::kFailed;
  try {
    if (evaluating && exit_code == 0) store_evaluation(job);
    job.record = report::read_run(job.run.folder);
    const bool stopped = asked && (exit_code == 128 + SIGTERM || exit_code == 128 + SIGINT);
    const bool over = job.record.result && (!evaluating || evaluated(job));
    // Of several runs in one child, those that are over are not to blame for its end.
    const bool ended_well = exit_code == 0 || !evaluating;
    if (stopped || report::diverged(job.record) || (ended_well && over)) return settle(job);
    const int signal = exit_code > 128 ? exit_code - 128 : 0;
    const bool ended_before = job.ended_by != 0 && job.ended_evaluating == evaluating;
    const char* const what = evaluating ? "evaluation" : "training";
    if (signal != 0 && !asked && !ended_before) {
      job.ended_by = signal;
      job.ended_evaluating = evaluating;
      files::append_line(job.log(), fmt::format("{} was ended by {}; it is started once more", what,
                                                signal_name(signal)));
      return settle(job);
    }
    if (exit_code == train::kCouldNotStart) {
      job.problem = "the program could not be started (exit code 127)";
    } else if (signal != 0) {
      job.problem = fmt::format("{} was ended by {}{}", what, signal_name(signal),
                                ended_before ? ", for the second time" : "");
    } else {
      job.problem = fmt::format("{} ended with exit code {}", what, exit_code);
    }
    for (const std::string& line : last_lines(job.log(), kShownLogLines)) {
      job.problem += "\n  " + line;
    }
  } catch (const std::exception& error) {
    job.problem = error.what();
  }
}

void SweepJobs::follow(SweepJob& job) const {
  try {
    job.record = report::read_run(job.run.folder);
  } catch (const std::exception&) {
    // Its end will tell what is wrong with it.
  }
}

int SweepJobs::work(const Limits& limits, const volatile std::sig_atomic_t* signal,
                    const std::function<void(bool ending)>& observe) {
  for (int received = 0;;) {
    if (received == 0 && *signal != 0) {
      received = *signal;
      children_.signal(SIGTERM);
    }
    for (const train::EndedChild& child : children_.reap()) {
      for (const size_t i : started_[child.key]) end(jobs_[i], child.exit_code, received != 0);
    }
    while (received == 0 && children_.running() < static_cast<size_t>(limits.at_once) &&
           start_next(limits)) {
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - read_ >= kReadEvery) {
      read_ = now;
      for (SweepJob& job : jobs_) {
        if (job.stage == Stage::kTraining) follow(job);
      }
    }
    observe(received != 0);
    if (children_.running() == 0) return received;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace hdetach::cli
