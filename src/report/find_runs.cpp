#include "report/find_runs.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "report/natural_order.h"

namespace hdetach::report {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestFolder = 6;  // below the one that was named
constexpr size_t kMostFolders = 20000;

fs::path absolute_path(const fs::path& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  return path.has_filename() ? path : path.parent_path();  // "runs/" as "runs"
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"config.toml", "metrics.jsonl", "result.json"}) {
    if (fs::exists(folder / name, error)) return true;
  }
  return false;
}

std::optional<int64_t> seed_of(const std::string& name) {
  const std::string start = "seed-";
  if (name.compare(0, start.size(), start) != 0) return std::nullopt;
  int64_t seed = 0;
  const char* const end = name.data() + name.size();
  const auto [next, error] = std::from_chars(name.data() + start.size(), end, seed);
  return error == std::errc() && next == end ? std::optional<int64_t>(seed) : std::nullopt;
}

class Search {
 public:
  explicit Search(Notices& notices) : notices_(notices) {}

  void visit(const fs::path& folder, int depth) {
    struct stat status;
    if (::stat(folder.c_str(), &status) != 0) {
      const std::error_code reason(errno, std::generic_category());
      notices_.add(fmt::format("{}: {}; it is left out", folder.string(), reason.message()));
      return;
    }
    if (!S_ISDIR(status.st_mode)) {
      notices_.add(fmt::format("{}: a file, not a folder; name the folder of a run or one above it",
                               folder.string()));
      return;
    }
    if (visited_.size() >= kMostFolders) {
      if (!std::exchange(too_many_, true)) {
        notices_.add(
            fmt::format("{}: there are more than {} folders; from here on they are left "
                        "out. Name one nearer to the runs",
                        folder.string(), kMostFolders));
      }
      return;
    }
    if (!visited_.insert({status.st_dev, status.st_ino}).second) return;
    searched_.insert(absolute_path(folder));
    if (is_run(folder)) return found(folder);
    if (depth > kDeepestFolder) {
      notices_.add(fmt::format("{}: more than {} levels down; it is left out", folder.string(),
                               kDeepestFolder));
      return;
    }
    for (const fs::path& inner : folders_in(folder)) visit(inner, depth + 1);
  }

  std::vector<FoundRun> runs() {
    for (FoundRun& run : runs_) run.whole = searched_.count(run.experiment) != 0;
    return std::move(runs_);
  }

 private:
  std::vector<fs::path> folders_in(const fs::path& folder) {
    std::vector<fs::path> inner;
    std::error_code error;
    for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      std::error_code no_folder;  // a link that leads nowhere is none
      if (name[0] != '.' && it->is_directory(no_folder)) inner.push_back(it->path());
    }
    if (error) {
      notices_.add(fmt::format("{}: {}; it is left out", folder.string(), error.message()));
    }
    std::sort(inner.begin(), inner.end(), [](const fs::path& a, const fs::path& b) {
      return natural_less(a.filename().string(), b.filename().string());
    });
    return inner;
  }

  void found(const fs::path& folder) {
    const fs::path where = absolute_path(folder);
    FoundRun run;
    run.folder = folder;
    run.name = run.setting = where.filename().string();
    run.experiment = where.parent_path();
    run.seed = seed_of(run.name);
    if (run.seed && run.experiment.has_filename()) {
      run.setting = run.experiment.filename().string();
      run.name = run.setting + "/" + run.name;
      run.experiment = run.experiment.parent_path();
    }
    runs_.push_back(std::move(run));
  }

  Notices& notices_;
  std::set<std::pair<dev_t, ino_t>> visited_;
  std::set<fs::path> searched_;
  std::vector<FoundRun> runs_;
  bool too_many_ = false;
};

}  // namespace

std::vector<FoundRun> find_runs(const std::vector<fs::path>& folders, Notices& notices) {
  Search search(notices);
  for (const fs::path& folder : folders) search.visit(folder, 0);
  return search.runs();
}

}  // namespace hdetach::report
