// What GPUs were given to do: a file with one JSON object a line, as results/gpu-time.jsonl.
//
//   {"experiments":["copy-100"],"command":"hdetach sweep ...","runs":15,"seconds":485,
//    "commits":["da1bdc9ce028"],"gpu":"NVIDIA H200"}
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hdetach::report {

struct GpuTime {
  std::vector<std::string> experiments, commits;  // at least one of each
  std::string command, gpu;
  int64_t runs = 0;
  double seconds = 0;
};

// Throws std::runtime_error ("file:line: ..."), on a file without a line too.
std::vector<GpuTime> read_gpu_time(const std::filesystem::path& path);

// A row for each command that was for one of these experiments, none of them for all, and the sum.
// Throws std::runtime_error on an experiment that no line names.
std::string gpu_time_markdown(const std::vector<GpuTime>& lines,
                              const std::vector<std::string>& experiments);

// "All runs of the reproduction together took 97 minutes of one NVIDIA H200."
std::string gpu_minutes_markdown(const std::vector<GpuTime>& lines);

}  // namespace hdetach::report
