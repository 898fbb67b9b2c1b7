// The runs of some folders, as experiments with settings: what a page shows. The order of the
// settings, the paper's numbers and the threshold are those of the experiment file that
// `hdetach sweep` leaves beside its runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/notices.h"
#include "report/run_files.h"
#include "report/sweep_record.h"

namespace hdetach::report {

struct ShownRun {
  std::string name, folder;
  std::optional<int64_t> seed;
  std::shared_ptr<const RunFiles> files;
};

struct Experiment {
  std::string name;
  SweepRecord record;                        // its sweep's seeds are not used: [setting][run]
  std::vector<std::vector<ShownRun>> shown;  // likewise
};

struct Experiments {
  std::vector<Experiment> all;  // empty when there is nothing to show; the notices say why
  Notices notices;
};

class ExperimentReader {
 public:
  // `first_file`: the stem of the experiment file that counts where a folder has several; empty
  // means the one with the folder's name.
  explicit ExperimentReader(std::vector<std::filesystem::path> folders,
                            std::string first_file = "");

  // Never throws on what the folders hold. Reads only the runs that changed since.
  Experiments read();

  // Changes when the next read() may give something else.
  std::string stamp() const;

 private:
  const std::vector<std::filesystem::path> folders_;
  const std::string first_file_;
  RunReader reader_;
};

}  // namespace hdetach::report
