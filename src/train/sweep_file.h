// The sweep file: a grid of settings and seeds over one base configuration. experiments/ has them.
//
//   task = "copy"
//   folder = "copy-100"                # under --out; the file's own name when left out
//   threshold = 0.99                   # the tables count the epochs to it
//   seeds = [1, 2, 3]
//   eval-delays = [200, 400]           # copy: where the best model of each run is tried as well
//   [base]                             # settings of `hdetach train`, seed apart
//   delay = 100
//   [[setting]]                        # one for each line of the table; more such settings
//   name = "plain"
//   paper = "100, most by epoch 150"   # the paper's result, shown beside ours
//   paper-eval = [64.85, 48.17]        # percent, one for each of eval-delays
//   paper-scores = [71.7, 54.4, 39.7, 28.8, 24.8, 93]  # caption: kPaperScores, times 100
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "train/config.h"

namespace hdetach::train {

// The scores that the paper has of captions, by the names that ours have in result.json.
constexpr std::array<const char*, 6> kPaperScores = {"Bleu_1", "Bleu_2", "Bleu_3",
                                                     "Bleu_4", "METEOR", "CIDEr"};

struct SweepSetting {
  std::string name;  // safe as the name of a folder
  Config config;     // without the seed
  std::string paper;
  std::vector<double> paper_eval;    // percent; empty, or one for each eval delay
  std::vector<double> paper_scores;  // times 100; empty, or one for each of kPaperScores
};

struct Sweep {
  std::string task;
  std::string folder;
  double threshold = 0.99;
  std::vector<int64_t> seeds;
  std::vector<int64_t> eval_delays;
  std::vector<SweepSetting> settings;
};

struct SweepRun {
  size_t setting;  // of Sweep::settings
  Config config;
  std::string name;  // "plain/seed-1": its folder under that of the sweep
};

// `path` stands in the messages, and its stem is the folder where the file names none. Throws
// toml::Error ("path:line: ...").
Sweep parse_sweep(const std::string& text, const std::string& path);

// Seed by seed, so that the settings can be compared early.
std::vector<SweepRun> runs(const Sweep& sweep);

// What is not as the task has it by default, as flags: "--delay 300 --anneal-epochs 40".
std::string changed_flags(const Config& config);

}  // namespace hdetach::train
