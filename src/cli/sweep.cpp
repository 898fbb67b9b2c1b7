// hdetach sweep FILE...: every run of the experiments, several at a time, and the tables beside the
// paper's. What is on disk counts: a sweep that ended early goes on where it was.
#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cli/interrupt.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/report_page.h"
#include "cli/subcommands.h"
#include "cli/sweep_jobs.h"
#include "cli/sweep_lock.h"
#include "cli/sweep_plan.h"
#include "cli/sweep_view.h"
#include "formats/files.h"
#include "report/experiments.h"
#include "report/page.h"
#include "report/summary.h"
#include "report/terminal_plot.h"
#include "train/folder_lock.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/sweep_file.h"

namespace hdetach::cli {
namespace {

using nlohmann::ordered_json;
using Stage = SweepJob::Stage;

struct SweepOptions {
  std::vector<std::string> files;
  std::string out = "runs";
  int jobs = 0;        // 0 means the cores; on a GPU one
  std::string device;  // empty means what the files say
  int replicas = 16;
  int threads = 0;  // of each run; 0 means the cores divided by the jobs
  std::vector<std::string> only;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

void check_devices(const SweepPlan& plan) {
  try {
    for (const PlannedRun& run : plan.runs) train::check_device(run.config);
  } catch (const train::ConfigError& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
}

void print_json(const ordered_json& value) {
  print("{}\n", value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

// Several children on one GPU take turns (but for NVIDIA's multi-process service): by default there
// is one, with many runs in it.
int children_at_once(const SweepJobs& jobs, int wanted, int threads) {
  int waiting = 0;
  bool on_gpu = true;
  for (const SweepJob& job : jobs.all()) {
    waiting += job.stage == Stage::kWaiting;
    on_gpu &= job.run.config.device == "cuda";
  }
  if (wanted == 0) wanted = on_gpu ? 1 : usable_cores() / std::max(threads, 1);
  return std::clamp(waiting, 1, wanted);  // a few long runs get the cores that more would have had
}

// Returns the names of the failed runs. Many runs mostly fail for the same reason, so a few are
// shown.
std::string print_failures(const SweepJobs& jobs) {
  constexpr size_t kShown = 5;
  std::string names;
  size_t count = 0;
  for (const SweepJob& job : jobs.all()) {
    if (job.stage != Stage::kFailed) continue;
    names += (names.empty() ? "" : ", ") + job.run.name;
    if (++count <= kShown) print(stderr, "{}: {}\n", job.run.folder.string(), job.problem);
  }
  if (count > kShown) print(stderr, "and {} more, see their train.log\n", count - kShown);
  return names;
}

bool is_damaged(const SweepJob& job) {  // before anything is trained
  return job.stage == Stage::kFailed && !report::diverged(job.record);
}

std::string state_of(const SweepJob& job) {
  return is_damaged(job) ? "damaged" : progress(job.record, job.run.config);
}

void list_runs(const SweepJobs& jobs, bool json) {
  ordered_json out = {{"runs", ordered_json::array()}};
  size_t name_width = 0, state_width = 0, to_do = 0, damaged = 0;
  for (const SweepJob& job : jobs.all()) {
    name_width = std::max(name_width, job.run.folder.string().size());
    state_width = std::max(state_width, state_of(job).size());
    to_do += job.stage == Stage::kWaiting;
    damaged += is_damaged(job);
  }
  for (const SweepJob& job : jobs.all()) {
    const std::string state = state_of(job);
    const std::string flags = train::changed_flags(job.run.config);
    if (!json) {
      print("{:<{}}  {:<{}}  {}\n", job.run.folder.string(), name_width, state, state_width, flags);
    }
    out["runs"].push_back(
        {{"run", job.run.name},
         {"folder", job.run.folder.string()},
         {"status", job.record.result ? ordered_json(job.record.result->status) : nullptr},
         {"epochs", job.record.epochs.empty() ? 0 : job.record.epochs.back().epoch},
         {"of", job.run.config.epochs},
         {"to_do", job.stage == Stage::kWaiting},
         {"damaged", is_damaged(job) ? ordered_json(job.problem) : nullptr},
         {"flags", flags}});
  }
  out["to_do"] = to_do;
  if (json) {
    print_json(out);
  } else {
    print("{} runs, {} to do\n", jobs.all().size(), to_do);
  }
  if (damaged == 0) return;
  print_failures(jobs);
  throw std::runtime_error(fmt::format("{} of {} runs are damaged", damaged, jobs.all().size()));
}

// Beside its runs, so that `hdetach report` knows the order of the settings and the paper's
// numbers.
void keep_sweep_file(const PlannedSweep& sweep) {
  const std::filesystem::path copy = sweep.folder / (sweep.name() + ".toml");
  const std::string text = files::read(sweep.file);
  if (!std::filesystem::exists(copy) || files::read_regular(copy) != text) {
    files::write_regular(copy, text);
  }
}

// The runs of a sweep that was killed still save, and hold their locks so long. One that somebody
// trains by hand may hold it for days: it fails in its turn, and the others are done.
void wait_for_runs(const SweepPlan& plan, const volatile std::sig_atomic_t* signal) {
  constexpr std::chrono::seconds kLongest(60);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  bool told = false;
  for (const PlannedRun& run : plan.runs) {
    const std::filesystem::path lock = run.folder / train::kRunLock;
    if (!std::filesystem::is_regular_file(lock)) continue;
    while (*signal == 0 && std::chrono::steady_clock::now() < end &&
           !train::FolderLock(lock).is_held()) {
      if (!std::exchange(told, true)) {
        print(stderr,
              "{} is in use by another process, perhaps of a sweep that was ended and "
              "still saves; waiting up to {} s\n",
              run.folder.string(), kLongest.count());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

struct SweepPage {
  std::string path;     // empty where there is none
  std::string problem;  // why there is none
};

// A page that fails fails no sweep.
SweepPage write_sweep_page(const PlannedSweep& sweep) {
  // A sweep that shares the folder of another has its own page there.
  const std::string name = sweep.name() == sweep.sweep.folder ? "report" : sweep.name();
  const std::string path = (sweep.folder / (name + ".html")).string();
  try {
    need_page();
    const report::Experiments experiments =
        report::ExperimentReader({sweep.folder}, sweep.name()).read();
    need_runs(experiments, {sweep.folder});
    print_notices(experiments.notices);
    const std::string title = fmt::format("hdetach sweep {}", sweep.file.string());
    files::write(path,
                 report::page(report::page_template(), report_data(experiments, title, false)));
  } catch (const std::exception& problem) {
    return {"", problem.what()};
  }
  return {path, ""};
}

// The names, within the sweep, of its runs that `is_one` says yes to.
std::vector<std::string> names_of(const PlannedSweep& sweep, const SweepJobs& jobs,
                                  const std::function<bool(const SweepJob&)>& is_one) {
  std::unordered_set<std::string> folders;
  for (const SweepJob& job : jobs.all()) {
    if (is_one(job)) folders.insert(job.run.folder.string());
  }
  std::vector<std::string> names;
  for (const train::SweepRun& run : train::runs(sweep.sweep)) {
    if (folders.count((sweep.folder / run.name).string()) > 0) names.push_back(run.name);
  }
  return names;
}

ordered_json results_json(const PlannedSweep& sweep, const report::SweepRecord& record,
                          const SweepPage& page, const SweepJobs& jobs, bool interrupted) {
  ordered_json out = {{"file", sweep.file.string()}};
  out.update(report::summary_json(record));
  out["page"] = page.path.empty() ? ordered_json(nullptr) : ordered_json(page.path);
  out["failed"] =
      names_of(sweep, jobs, [](const SweepJob& job) { return job.stage == Stage::kFailed; });
  out["started_again"] =
      names_of(sweep, jobs, [](const SweepJob& job) { return job.ended_by != 0; });
  out["interrupted"] = interrupted;
  return out;
}

// The table, the curves and the page of all runs of each file, also of those left out by --only.
void show_results(const SweepPlan& plan, const SweepJobs& jobs, bool json, bool interrupted) {
  for (const PlannedSweep& sweep : plan.sweeps) {
    report::Notices notices;  // those of the page are printed
    const report::SweepRecord record = report::read_sweep(sweep.sweep, sweep.folder, &notices);
    const SweepPage page = write_sweep_page(sweep);
    if (json) {
      print_json(results_json(sweep, record, page, jobs, interrupted));
      continue;
    }
    const bool colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == nullptr;
    if (plan.sweeps.size() > 1) print("\n{}\n", sweep.file.string());
    print("\n{}\n", report::summary_text(record));
    print("{}page: {}\n", report::terminal_plot(record, terminal_size(stdout).columns, colour),
          page.path.empty() ? "none: " + page.problem : page.path);
  }
  flush(stdout);
}

void print_started_again(const SweepJobs& jobs) {
  for (const SweepJob& job : jobs.all()) {
    if (job.ended_by == 0 || job.stage == Stage::kFailed) continue;
    print(stderr, "{}: its process was ended by {} and started again\n", job.run.folder.string(),
          signal_name(job.ended_by));
  }
}

void run_sweep(const SweepOptions& options) {
  const SweepPlan plan = plan_sweeps(options.files, options.out, options.device, options.only);
  if (options.dry_run) return list_runs(SweepJobs(plan.runs), options.json);

  check_devices(plan);
  for (const PlannedSweep& sweep : plan.sweeps) files::make_folder(sweep.folder);
  const std::vector<train::FolderLock> locks = lock_folders(plan);
  const auto* const signal = watch_signals();
  wait_for_runs(plan, signal);
  SweepJobs jobs(plan.runs);
  const int at_once = children_at_once(jobs, options.jobs, options.threads);
  const int threads = options.threads > 0 ? options.threads : std::max(1, usable_cores() / at_once);
  if (at_once * threads > usable_cores()) {
    print(stderr,
          "hdetach: {} processes of {} threads each share the {} cores; fewer --jobs or "
          "--threads may be faster\n",
          at_once, threads, usable_cores());
  }
  for (const PlannedSweep& sweep : plan.sweeps) keep_sweep_file(sweep);
  SweepView view(options.json ? stderr : stdout, jobs);
  const int received = jobs.work({at_once, threads, options.replicas}, signal, [&](bool ending) {
    if (!options.quiet) view.show(ending);
  });
  if (!options.quiet) view.close();
  show_results(plan, jobs, options.json, received != 0);

  print_started_again(jobs);
  const std::string failed = print_failures(jobs);
  if (received != 0) {
    print(stderr, "saved; the same command goes on from here\n");
    throw ExitCode{128 + received};
  }
  if (!failed.empty()) {
    throw std::runtime_error(fmt::format("{} of {} runs failed: {}", jobs.count(Stage::kFailed),
                                         jobs.all().size(), failed));
  }
}

}  // namespace

void register_sweep(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "sweep", "Train every run of experiments (experiments/*.toml) and show their tables");
  auto options = std::make_shared<SweepOptions>();
  command
      ->add_option("FILE", options->files,
                   "An experiment: settings and seeds, as TOML. On a GPU runs of several files "
                   "train side by side where their shapes are the same")
      ->required();
  command->add_option("--out", options->out, "Folder in which each experiment has its own")
      ->capture_default_str();
  command
      ->add_option("--jobs", options->jobs,
                   "Processes at the same time, each with a run or, on a GPU, several (default: "
                   "the cores divided by --threads; 1 on a GPU)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", options->device, "cpu or cuda, whatever the files say")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      ->add_option("--replicas", options->replicas,
                   "Runs of the same shapes that train side by side on a GPU, at most")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  add_threads(*command, options->threads,
              "Threads of each run (default: the cores divided by --jobs)");
  command
      ->add_option("--only", options->only,
                   "Only the runs with TEXT in their name, SETTING/seed-N, or of several files "
                   "FOLDER/SETTING/seed-N; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", options->dry_run, "List the runs and how far they are; no work");
  command->add_flag("--json", options->json,
                    "Print one JSON object a line for each file; of --dry-run, one");
  command->add_flag("--quiet", options->quiet, "No progress, only the results");
  command->callback([options] { run_sweep(*options); });
}

}  // namespace hdetach::cli
