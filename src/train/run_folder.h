// A run on disk. Files are replaced as a whole, and state.safetensors comes last: it is the moment
// at which an epoch counts. A process killed before that leaves files that are ahead of the state;
// going on from the state makes the same ones again.
//
//   config.toml          every setting, resolved
//   words.txt            of captions: the vocabulary, a word a line
//   metrics.jsonl        one object an epoch
//   xray.jsonl           where the gradient flowed, one object every so many epochs; if asked for
//   best.safetensors     weights of the best validation accuracy so far
//   last.safetensors     weights of the latest epoch
//   state.safetensors    from which training goes on
//   result.json          once the run is over
//   sessions.jsonl       one object for each process that worked on it
//   lock                 held while a process works on it
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/checksum.h"
#include "train/config.h"
#include "train/folder_lock.h"
#include "train/metrics.h"
#include "xray/record.h"

namespace hdetach {
struct NamedTensor;
}

namespace hdetach::train {

class RunState;

constexpr const char* kRunLock = "lock";

// For readers, who take no lock.
std::optional<Config> read_config(const std::filesystem::path& run);  // empty: there is no run
void load_best(const std::vector<NamedTensor>& parameters, const std::filesystem::path& run);
void load_last(const std::vector<NamedTensor>& parameters, const std::filesystem::path& run);
// The x-rays of the run. The last line may be incomplete; it is left out.
std::vector<xray::Record> read_xrays(const std::filesystem::path& run);

class RunFolder {
 public:
  // Makes the folder where needed and takes its lock. Throws when another process holds it.
  explicit RunFolder(std::filesystem::path path);

  std::optional<RunResult> result() const;
  // The name of a file that only a run leaves, where one is there; empty otherwise.
  std::string trace_of_a_run() const;

  // A new run, or a longer one, with the files that its task adds.
  void begin(const Config& config, const std::map<std::string, std::string>& extra);
  void add_session(const std::string& json);

  // False when no state was saved yet. Drops metrics and x-rays of epochs that the state does
  // not know. Throws std::runtime_error, naming the file, where one is missing, damaged or of other
  // data. To be called before begin() and the saves.
  bool restore(RunState& run);
  void save_epoch(RunState& run, const EpochMetrics& metrics, bool best,
                  const std::optional<xray::Record>& xray);
  void save_state(RunState& run);
  void finish(RunResult result);

  const std::filesystem::path& path() const { return path_; }

 private:
  void check_extra(const RunState& run) const;
  std::string weights_of(RunState& run) const;

  std::filesystem::path path_;
  FolderLock lock_;
  Checksum metrics_, xrays_;                     // of the lines so far; noted in the state
  std::map<std::string, std::string> settings_;  // noted with every file that is saved
};

}  // namespace hdetach::train
