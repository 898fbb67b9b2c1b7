// What was wrong with the files of a report, and what was done about it. A report shows what it
// can.
#pragma once

#include <string>
#include <vector>

namespace hdetach::report {

class Notices {
 public:
  // "runs/x/metrics.jsonl:7: not JSON; the line is left out"
  void add(std::string text) { all_.push_back(std::move(text)); }
  void add(const Notices& others) {
    all_.insert(all_.end(), others.all_.begin(), others.all_.end());
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
};

}  // namespace hdetach::report
