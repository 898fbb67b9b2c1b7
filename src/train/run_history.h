// Whether the files of a run are as they were written, and agree: metrics.jsonl and xray.jsonl with
// the state, every other file with its own checksum. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/checksum.h"
#include "formats/safetensors.h"
#include "xray/record.h"

namespace hdetach::train {

// What is in them says run_folder.h.
constexpr const char *kConfigFile = "config.toml", *kMetricsFile = "metrics.jsonl",
                     *kXraysFile = "xray.jsonl", *kBestFile = "best.safetensors",
                     *kLastFile = "last.safetensors", *kStateFile = "state.safetensors",
                     *kResultFile = "result.json", *kSessionsFile = "sessions.jsonl";

struct XrayLine {
  std::string text;
  xray::Record record;
};
// The last line may be incomplete; it is left out.
std::vector<XrayLine> xray_lines(const std::filesystem::path& run);

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

// Those of the first `epochs` epochs; `saved` is whether the run has a state. This and what follows
// throws std::runtime_error, naming the file, where something is missing or damaged.
History read_history(const std::filesystem::path& run, int64_t epochs, bool saved);

// What the state notes of the lines, and the comparison. Without notes, as of earlier versions, any
// lines will do.
safetensors::Metadata history_notes(const Checksum& metrics, const Checksum& xrays, int64_t epochs);
void check_history(const History& history, const safetensors::Metadata& notes,
                   const std::filesystem::path& run);

// The lines against the state where there is one, else against the result.
void check_lines(const std::filesystem::path& run);

// The settings, the lines, and every byte of the weights and the state. For who reads a run; going
// on from one, RunFolder::restore() checks it.
void check_run(const std::filesystem::path& run);

}  // namespace hdetach::train
