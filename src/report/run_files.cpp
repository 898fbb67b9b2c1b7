#include "report/run_files.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <exception>
#include <functional>
#include <thread>

#include "formats/toml.h"
#include "report/run_lines.h"
#include "tasks/side_by_side.h"

namespace hdetach::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSessions = 20;  // the latest

std::string setting_text(const toml::Value& value) {
  if (auto* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  if (auto* whole = std::get_if<int64_t>(&value.data)) return std::to_string(*whole);
  if (auto* real = std::get_if<double>(&value.data)) return fmt::format("{}", *real);
  if (auto* string = std::get_if<std::string>(&value.data)) return *string;
  return std::holds_alternative<toml::Array>(value.data) ? "a list" : "a table";
}

// Every setting that the file has, also those that this version does not know.
void read_settings(const fs::path& folder, RunFiles& run) {
  const fs::path path = folder / "config.toml";
  if (!fs::exists(path)) {
    run.notices.add(
        fmt::format("{}: there is none; the run is shown without its settings", path.string()));
    return;
  }
  toml::Table table;
  try {
    table = toml::parse(read_text(path), path.string());
  } catch (const std::exception&) {
    return;  // read_run has the notice
  }
  for (const toml::Entry& entry : table) {
    std::string text = setting_text(entry.value);
    if (entry.key == "task" && std::holds_alternative<std::string>(entry.value.data)) {
      run.task = text;
    }
    run.config.emplace_back(entry.key, std::move(text));
  }
}

std::vector<std::string> read_objects(const fs::path& path, bool one_an_epoch, Notices& notices) {
  std::vector<std::string> texts;
  try {
    if (!fs::exists(path)) return texts;
    std::vector<ObjectLine> lines = read_object_lines(path, notices);
    if (!one_an_epoch) {
      for (ObjectLine& line : lines) texts.push_back(std::move(line.text));
      return texts;
    }
    std::map<int64_t, std::string> by_epoch;  // of those that a run wrote again the last counts
    for (ObjectLine& line : lines) by_epoch[line.epoch] = std::move(line.text);
    if (by_epoch.count(-1) != 0) {
      notices.add(fmt::format("{}: lines without an epoch are left out", path.string()));
      by_epoch.erase(-1);
    }
    for (auto& [epoch, text] : by_epoch) texts.push_back(std::move(text));
  } catch (const std::exception& problem) {
    notices.add(fmt::format("{}; the file is left out", problem.what()));
  }
  return texts;
}

}  // namespace

RunFiles read_run_files(const fs::path& folder) {
  RunFiles run;
  try {
    run.record = read_run(folder, &run.notices);
    read_settings(folder, run);
    run.sessions = read_objects(folder / "sessions.jsonl", false, run.notices);
    if (run.sessions.size() > kSessions) {
      run.sessions.erase(run.sessions.begin(), run.sessions.end() - kSessions);
    }
    run.xray = read_objects(folder / "xray.jsonl", true, run.notices);
  } catch (const std::exception& problem) {
    run.notices.add(fmt::format("{}: {}", folder.string(), problem.what()));
  }
  return run;
}

std::string file_stamp(const fs::path& file) {
  struct stat status;
  if (::stat(file.c_str(), &status) != 0) return "-";
  return fmt::format("{}.{}.{}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::string run_stamp(const fs::path& folder) {
  std::string stamp;
  for (const char* name : {"config.toml", "metrics.jsonl", "result.json", "eval.json",
                           "sessions.jsonl", "xray.jsonl"}) {
    stamp += file_stamp(folder / name) + " ";
  }
  return stamp;
}

std::vector<std::shared_ptr<const RunFiles>> RunReader::read(const std::vector<fs::path>& folders) {
  std::vector<Known> now(folders.size());
  std::vector<size_t> changed;
  for (size_t i = 0; i < folders.size(); ++i) {
    now[i].stamp =
        run_stamp(folders[i]);  // before it is read: what is written meanwhile shows later
    const auto before = known_.find(folders[i]);
    if (before != known_.end() && before->second.stamp == now[i].stamp) {
      now[i].files = before->second.files;
    } else {
      changed.push_back(i);
    }
  }
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  tasks::side_by_side(changed.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      now[changed[i]].files = std::make_shared<RunFiles>(read_run_files(folders[changed[i]]));
    }
  });
  known_.clear();
  std::vector<std::shared_ptr<const RunFiles>> out;
  for (size_t i = 0; i < folders.size(); ++i) {
    out.push_back(now[i].files);
    known_[folders[i]] = std::move(now[i]);
  }
  return out;
}

}  // namespace hdetach::report
