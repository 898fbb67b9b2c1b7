// Whether the files of a run are as they were written, and agree: metrics.jsonl and xray.jsonl with
// the state, every other file with its own checksum. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/checksum.h"
#include "formats/safetensors.h"
#include "train/config.h"
#include "train/metrics.h"
#include "xray/record.h"

namespace hdetach::train {

// What is in them says run_folder.h.
constexpr const char *kConfigFile = "config.toml", *kMetricsFile = "metrics.jsonl",
                     *kXraysFile = "xray.jsonl", *kBestFile = "best.safetensors",
                     *kLastFile = "last.safetensors", *kStateFile = "state.safetensors",
                     *kResultFile = "result.json", *kSessionsFile = "sessions.jsonl",
                     *kWordsFile = "words.txt";

struct XrayLine {
  std::string text;
  xray::Record record;
};
// The last line may be incomplete; it is left out.
std::vector<XrayLine> xray_lines(const std::filesystem::path& run,
                                 size_t most = std::numeric_limits<size_t>::max());

struct KeptLines {
  void add(const std::string& line) {
    text += line + "\n";
    checksum.add(line);
  }
  std::string text;
  Checksum checksum;
};

// The lines of a run's epochs.
struct History {
  KeptLines metrics, xrays;
};

// Those of the first `epochs` epochs. This and what follows throws std::runtime_error, naming the
// file, where something is missing or damaged. Files of more than `most` bytes are refused.
constexpr size_t kAnySize = std::numeric_limits<size_t>::max();
History read_history(const std::filesystem::path& run, int64_t epochs, size_t most = kAnySize);

// Empty: it is not over.
std::optional<RunResult> read_result(const std::filesystem::path& run, size_t most = kAnySize);

// What the state and the result note of the lines, and the comparison. Without notes, as of earlier
// versions, any lines will do.
using Notes = std::map<std::string, std::string>;
Notes history_notes(const Checksum& metrics, const Checksum& xrays, int64_t epochs);
void check_history(const History& history, const Notes& notes, const std::filesystem::path& run);

// The lines against the state where there is one, else against the result.
void check_lines(const std::filesystem::path& run, size_t most = kAnySize);

// What the state, the weights and the result note of the settings, so that those of another run are
// told from its own; and the comparison, of a file's notes.
Notes settings_notes(const Config& config);
void check_settings(const Config& config, const Notes& notes, const std::filesystem::path& file);

// What the weights note of the other files that their task adds, by name.
Notes notes_of(const std::map<std::string, std::string>& files);
// That there are weights of that name, of this run, and that they and the files that they note are
// whole.
void check_weights(const std::filesystem::path& run, const Config& config, const char* name);

// That nothing in the folder says that a state was lost, where there is none.
void check_never_saved(const std::filesystem::path& run);

// Every byte of the settings, the lines, the weights and the state, as far as they are there. For
// who reads a run; going on from one, RunFolder::restore() checks it.
void check_files(const std::filesystem::path& run);
// And that nothing is missing, where the run is over. One of an earlier version may miss anything.
void check_run(const std::filesystem::path& run);

}  // namespace hdetach::train
