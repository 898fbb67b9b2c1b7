// All that the page shows of a run folder. What cannot be read is left out with a notice.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report/notices.h"
#include "report/run_record.h"

namespace hdetach::report {

struct RunFiles {
  RunRecord record;
  std::string task;                                         // empty when config.toml does not tell
  std::vector<std::pair<std::string, std::string>> config;  // every setting, as text
  std::vector<std::string> sessions, xray;                  // JSON objects; xray: one an epoch
  Notices notices;
};

// Never throws.
RunFiles read_run_files(const std::filesystem::path& folder);

// Which files there are, how long, of which time: changes when one of them does.
std::string run_stamp(const std::filesystem::path& folder);
std::string file_stamp(const std::filesystem::path& file);

// Reads run folders, and again only those whose files changed.
class RunReader {
 public:
  // One for each folder.
  std::vector<std::shared_ptr<const RunFiles>> read(
      const std::vector<std::filesystem::path>& folders);

 private:
  struct Known {
    std::string stamp;
    std::shared_ptr<const RunFiles> files;
  };
  std::map<std::filesystem::path, Known> known_;
};

}  // namespace hdetach::report
