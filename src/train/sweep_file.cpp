#include "train/sweep_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <unordered_set>

namespace hdetach::train {
namespace {

// Of a [[setting]] only, and not settings of a run.
const char* const kOfASetting[] = {"name", "paper", "paper-eval", "paper-scores"};

const char* const kFolderRule = "must be made of letters, digits, - _ . and not start with a dot";

bool folder_safe(const std::string& name) {
  return !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Sweep read(const toml::Table& file) const {
    for (const toml::Entry& entry : file) {
      const char* const known[] = {"task",        "folder", "threshold", "seeds",
                                   "eval-delays", "base",   "setting"};
      if (std::find(std::begin(known), std::end(known), entry.key) == std::end(known)) {
        fail(entry.value.line,
             fmt::format("a sweep has no key {}; it has task, folder, threshold, seeds, "
                         "eval-delays, [base] and [[setting]]. Settings of the runs go into [base]",
                         toml::quoted(entry.key)));
      }
    }
    Sweep sweep;
    sweep.task = text(need(file, "task", "task = \"copy\", \"mnist\" or \"caption\""), "task");
    const std::vector<std::string>& names = task_names();
    if (std::find(names.begin(), names.end(), sweep.task) == names.end()) {
      fail(toml::find(file, "task")->line, "task must be \"copy\", \"mnist\" or \"caption\"");
    }
    sweep.folder = std::filesystem::path(path_).stem().string();
    int folder_line = 1;
    if (const toml::Value* folder = toml::find(file, "folder")) {
      sweep.folder = text(*folder, "folder");
      folder_line = folder->line;
    }
    if (!folder_safe(sweep.folder)) {
      fail(folder_line, fmt::format("folder {} {}", toml::quoted(sweep.folder), kFolderRule));
    }
    if (const toml::Value* threshold = toml::find(file, "threshold")) {
      sweep.threshold = number(*threshold, "threshold");
      if (!(sweep.threshold > 0 && sweep.threshold <= 1)) {
        fail(threshold->line, "threshold must be an accuracy above 0 and at most 1");
      }
    }
    read_seeds(need(file, "seeds", "seeds = [1, 2, 3]"), sweep);
    if (const toml::Value* delays = toml::find(file, "eval-delays")) read_delays(*delays, sweep);
    read_settings(file, sweep);
    return sweep;
  }

 private:
  [[noreturn]] void fail(int line, const std::string& message) const {
    throw toml::Error(fmt::format("{}:{}: {}", path_, line, message));
  }

  const toml::Value& need(const toml::Table& table, const char* key, const char* example) const {
    const toml::Value* value = toml::find(table, key);
    if (value == nullptr) fail(1, fmt::format("{} is missing; write {}", key, example));
    return *value;
  }

  const std::string& text(const toml::Value& value, const char* key) const {
    const auto* string = std::get_if<std::string>(&value.data);
    if (string == nullptr || string->empty()) {
      fail(value.line, fmt::format("{} must be a text in quotes", key));
    }
    return *string;
  }

  double number(const toml::Value& value, const char* key) const {
    if (const auto* whole = std::get_if<int64_t>(&value.data)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(&value.data);
    if (real == nullptr || !std::isfinite(*real)) {
      fail(value.line, fmt::format("{} must be a number", key));
    }
    return *real;
  }

  const toml::Array& list(const toml::Value& value, const char* key) const {
    const auto* array = std::get_if<toml::Array>(&value.data);
    if (array == nullptr || array->empty()) {
      fail(value.line, fmt::format("{} must be a list with at least one entry", key));
    }
    return *array;
  }

  std::vector<double> numbers(const toml::Value& value, const char* key) const {
    std::vector<double> out;
    for (const toml::Value& entry : list(value, key)) {
      out.push_back(number(entry, fmt::format("an entry of {}", key).c_str()));
    }
    return out;
  }

  const toml::Table& table(const toml::Value& value, const char* shape) const {
    const auto* content = std::get_if<toml::Table>(&value.data);
    if (content == nullptr) fail(value.line, fmt::format("write {}", shape));
    return *content;
  }

  // The entries as whole numbers, each once, that the field of a run would take.
  std::vector<int64_t> wholes(const toml::Value& value, const char* key, const std::string& task,
                              const char* field) const {
    std::vector<int64_t> out;
    std::unordered_set<int64_t> known;
    Config scratch = default_config(task);
    for (const toml::Value& entry : list(value, key)) {
      try {
        set(scratch, *find_field(task, field), entry);
      } catch (const ConfigError& error) {
        fail(entry.line, fmt::format("{}: {}", key, error.what()));
      }
      const int64_t whole = std::get<int64_t>(entry.data);
      if (!known.insert(whole).second) {
        fail(entry.line, fmt::format("{} has {} twice", key, whole));
      }
      out.push_back(whole);
    }
    return out;
  }

  void read_seeds(const toml::Value& value, Sweep& sweep) const {
    sweep.seeds = wholes(value, "seeds", sweep.task, "seed");
  }

  void read_delays(const toml::Value& value, Sweep& sweep) const {
    if (sweep.task != "copy") fail(value.line, "eval-delays belongs to the task copy; remove it");
    sweep.eval_delays = wholes(value, "eval-delays", sweep.task, "delay");
  }

  // The entries that are settings of a run.
  void apply_run(Config& config, const toml::Table& content) const {
    toml::Table own;
    for (const toml::Entry& entry : content) {
      if (std::find(std::begin(kOfASetting), std::end(kOfASetting), entry.key) !=
          std::end(kOfASetting)) {
        continue;
      }
      if (entry.key == "seed") {
        fail(entry.value.line, "the seeds stand once for all settings: seeds = [1, 2, 3]");
      }
      if (entry.key == "task") fail(entry.value.line, "task stands at the top of a sweep");
      own.push_back(entry);
    }
    apply(config, own, path_);
  }

  void read_settings(const toml::Table& file, Sweep& sweep) const {
    Config base = default_config(sweep.task);
    if (const toml::Value* value = toml::find(file, "base")) {
      const toml::Table& content = table(*value, "[base] as a table");
      for (const char* key : kOfASetting) {
        if (const toml::Value* wrong = toml::find(content, key)) {
          fail(wrong->line, fmt::format("{} belongs to a [[setting]]", key));
        }
      }
      apply_run(base, content);
    }
    const char* const shape = "[[setting]] with a name for each setting";
    std::unordered_set<std::string> names;
    for (const toml::Value& value : list(need(file, "setting", shape), "setting")) {
      read_setting(table(value, shape), value.line, base, names, sweep);
    }
  }

  void read_setting(const toml::Table& content, int line, const Config& base,
                    std::unordered_set<std::string>& names, Sweep& sweep) const {
    SweepSetting setting;
    const toml::Value* name = toml::find(content, "name");
    if (name == nullptr) fail(line, "this [[setting]] has no name; write name = \"plain\"");
    setting.name = text(*name, "name");
    if (!folder_safe(setting.name)) {
      fail(name->line, fmt::format("name {} {}", toml::quoted(setting.name), kFolderRule));
    }
    if (!names.insert(setting.name).second) {
      fail(name->line,
           fmt::format("the name {} is taken by another [[setting]]", toml::quoted(setting.name)));
    }
    if (const toml::Value* paper = toml::find(content, "paper")) {
      setting.paper = text(*paper, "paper");
    }
    if (const toml::Value* eval = toml::find(content, "paper-eval")) {
      setting.paper_eval = numbers(*eval, "paper-eval");
      if (setting.paper_eval.size() != sweep.eval_delays.size()) {
        fail(eval->line, fmt::format("paper-eval has {} entries, but eval-delays has {}",
                                     setting.paper_eval.size(), sweep.eval_delays.size()));
      }
    }
    if (const toml::Value* scores = toml::find(content, "paper-scores")) {
      if (sweep.task != "caption") {
        fail(scores->line, "paper-scores belongs to the task caption; remove it");
      }
      setting.paper_scores = numbers(*scores, "paper-scores");
      if (setting.paper_scores.size() != kPaperScores.size()) {
        fail(scores->line,
             fmt::format("paper-scores has {} entries, but must have {}: B-1, B-2, B-3, B-4, "
                         "METEOR and CIDEr",
                         setting.paper_scores.size(), kPaperScores.size()));
      }
    }
    setting.config = base;
    apply_run(setting.config, content);
    try {
      check(setting.config);
    } catch (const ConfigError& error) {
      fail(line, fmt::format("setting {}: {}", toml::quoted(setting.name), error.what()));
    }
    sweep.settings.push_back(std::move(setting));
  }

  const std::string& path_;
};

}  // namespace

Sweep parse_sweep(const std::string& text, const std::string& path) {
  return Reader(path).read(toml::parse(text, path));
}

std::vector<SweepRun> runs(const Sweep& sweep) {
  std::vector<SweepRun> all;
  for (const int64_t seed : sweep.seeds) {
    for (size_t i = 0; i < sweep.settings.size(); ++i) {
      SweepRun run{i, sweep.settings[i].config,
                   fmt::format("{}/seed-{}", sweep.settings[i].name, seed)};
      run.config.seed = seed;
      all.push_back(std::move(run));
    }
  }
  return all;
}

std::string changed_flags(const Config& config) {
  const Config usual = default_config(config.task);
  std::string out;
  for (const Field& field : fields(config.task)) {
    const std::string value = text(config, field);
    if (value == text(usual, field)) continue;
    out += fmt::format("{}--{}", out.empty() ? "" : " ", field.name);
    if (!std::holds_alternative<bool Config::*>(field.member)) out += " " + value;
  }
  return out;
}

}  // namespace hdetach::train
