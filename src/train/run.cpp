#include "train/run.h"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <utility>

#include "train/engine.h"
#include "train/make_task.h"
#include "train/run_history.h"
#include "train/train_loop.h"
#include "train/trainer_group.h"

namespace hdetach::train {
namespace {

// More epochs are the same run, only longer, unless annealing counts from the end.
bool longer(const Config& config, const Config& before) {
  return config.anneal_epochs == 0 && config.epochs > before.epochs;
}

void check_same(const Config& config, Config before, const std::string& folder) {
  if (longer(config, before)) before.epochs = config.epochs;
  const std::string found = differences(config, before);
  if (found.empty()) return;
  throw ConfigError(
      fmt::format("out is {}, which holds a run of other settings: {}; give the same settings, or "
                  "another folder",
                  folder, found));
}

// What is known of a run before anything of it is made: it is over, or how it begins.
struct Start {
  std::optional<RunResult> over;
  bool begins = false;  // its settings are to be written
};

Start look(const GroupMember& member) {
  const RunFolder& folder = *member.folder;
  const auto before = read_config(folder.path());
  if (!before) {
    const std::string trace = folder.trace_of_a_run();
    if (trace.empty()) return {std::nullopt, true};
    throw ConfigError(
        fmt::format("out is {0}, which has a run's {1} but no config.toml; restore {0}/config.toml "
                    "from a copy, or name another folder",
                    folder.path().string(), trace));
  }
  if (!member.options.resume) {
    throw ConfigError(
        fmt::format("out is {}, which holds a run already; --resume goes on with it, "
                    "another folder starts anew",
                    folder.path().string()));
  }
  check_same(member.config, *before, folder.path().string());
  const bool goes_further = longer(member.config, *before);
  const auto result = folder.result();
  if (result && (!goes_further || result->status == "diverged")) {
    check_run(folder.path());
    return {result, false};
  }
  return {std::nullopt, goes_further};
}

// Runs on the same data share it: it is read, and copied to a GPU, once.
class Tasks {
 public:
  TaskData get(const Config& config) {
    if (config.task == "copy") return make_data(config);  // its sequences are its own
    std::string key;
    for (const char* name : {"data", "permute", "permutation-seed", "train-size", "valid-size",
                             "model", "most-words", "rare-words"}) {
      if (const Field* field = find_field(config.task, name)) key += text(config, *field) + "\n";
    }
    if (config.data == "generated") key += std::to_string(config.seed);
    const auto found = tasks_.find(key);
    return found != tasks_.end() ? found->second
                                 : tasks_.emplace(key, make_data(config)).first->second;
  }

 private:
  std::map<std::string, TaskData> tasks_;
};

}  // namespace

void check_device(const Config& config) {
  if (config.device != "cuda") return;
  const std::string problem = cuda_problem();
  if (!problem.empty()) throw ConfigError(fmt::format("device is cuda, but {}", problem));
}

std::vector<Outcome> run_group(const std::vector<GroupMember>& members,
                               const volatile std::sig_atomic_t* signal) {
  std::vector<Outcome> outcomes(members.size());
  std::vector<size_t> places;  // in `members`, of those that train
  std::vector<Config> configs;
  std::vector<TaskData> data;
  std::vector<bool> begins;
  Tasks tasks;
  const auto attempt = [&](size_t place, const auto& work) {
    try {
      work();
      return true;
    } catch (...) {
      outcomes[place].error = std::current_exception();
      return false;
    }
  };
  for (size_t i = 0; i < members.size(); ++i) {
    attempt(i, [&] {
      check_device(members[i].config);
      const Start start = look(members[i]);
      outcomes[i].result = start.over;
      if (start.over) return;
      data.push_back(tasks.get(members[i].config));  // first: bad data must not leave a run behind
      places.push_back(i);
      configs.push_back(members[i].config);
      begins.push_back(start.begins);
    });
  }
  if (places.empty()) return outcomes;

  const std::unique_ptr<TrainerGroup> group = make_group(configs, data);
  std::vector<LoopMember> trained;
  for (size_t k = 0; k < places.size(); ++k) {
    const GroupMember& member = members[places[k]];
    trained.push_back({member.folder, member.observer});
    trained.back().left_out = !attempt(places[k], [&] {
      const bool resumed = member.folder->restore(group->run(k));  // first: it may refuse the run
      if (begins[k]) member.folder->begin(member.config, group->run(k).files());
      member.folder->add_session(member.options.session);
      member.observer->started(group->run(k).progress, resumed);
    });
  }
  const auto results = train_loop(*group, trained, signal);
  for (size_t k = 0; k < places.size(); ++k) outcomes[places[k]].result = results[k];
  return outcomes;
}

std::optional<RunResult> run(const Config& config, RunFolder& folder, const RunOptions& options,
                             Observer& observer, const volatile std::sig_atomic_t* signal) {
  const std::vector<Outcome> outcomes = run_group({{config, &folder, options, &observer}}, signal);
  if (outcomes[0].error) std::rethrow_exception(outcomes[0].error);
  return outcomes[0].result;
}

}  // namespace hdetach::train
