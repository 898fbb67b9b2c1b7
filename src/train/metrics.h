// What a run writes down: a line of metrics.jsonl for each epoch, and result.json at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/outcome.h"

namespace hdetach::train {

// A number that is not finite is null in the file and NaN when read back.
struct EpochMetrics {
  int64_t epoch = 0;   // from 1
  int64_t update = 0;  // since the start of the run
  double train_loss = 0, valid_loss = 0;
  double valid_measure = 0;                      // Score::measure
  double grad_norm_mean = 0, grad_norm_max = 0;  // before clipping
  double clipped = 0;                            // fraction of the updates
  int64_t skipped = 0;                           // updates left out because not finite
  double detach = 0;
  double seconds = 0;                                 // of the run so far
  double updates_per_second = 0;                      // of this epoch, validation included
  std::map<std::string, double> caption_scores = {};  // empty in other tasks
  std::vector<SampleCaption> samples = {};
};
std::string to_json(const EpochMetrics& metrics);
// `place` ("metrics.jsonl:3") stands in the messages. Throws std::runtime_error.
EpochMetrics parse_metrics(const std::string& line, const std::string& place);

struct RunResult {
  std::string status;  // finished, stopped-early or diverged
  int64_t epochs = 0, updates = 0, best_epoch = 0;
  bool measure_is_cider = false;  // of captions; accuracy otherwise
  double best_valid_measure = 0;
  std::optional<double> test_measure = {};                 // of the best epoch's model
  std::map<std::string, double> test_caption_scores = {};  // likewise
  double seconds = 0;
  std::string message = {};  // why it ended
  // Of the run's other files, as run_history.h has them; empty in results of earlier versions.
  std::map<std::string, std::string> notes = {};
};
std::string to_json(const RunResult& result);
RunResult parse_result(const std::string& text, const std::string& place);

}  // namespace hdetach::train
