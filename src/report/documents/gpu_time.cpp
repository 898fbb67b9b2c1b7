#include "report/documents/gpu_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "formats/json_object.h"
#include "report/documents/markdown.h"
#include "report/documents/wording.h"
#include "report/run_lines.h"

namespace hdetach::report {
namespace {

std::vector<std::string> text_list(const JsonObject& line, const char* key) {
  std::vector<std::string> out;
  for (const nlohmann::json& entry : line.list(key)) {
    if (!entry.is_string()) line.fail(fmt::format("{} has an entry that is not a text", key));
    out.push_back(entry.get<std::string>());
  }
  if (out.empty()) line.fail(fmt::format("{} is empty", key));
  return out;
}

GpuTime parse_gpu_time(const std::string& text, const std::string& place) {
  check_nesting(text, place);
  const JsonObject line(text, place);
  GpuTime out;
  out.experiments = text_list(line, "experiments");
  out.commits = text_list(line, "commits");
  out.command = line.text("command");
  out.gpu = line.text("gpu");
  out.runs = line.whole("runs");
  out.seconds = line.number("seconds");
  if (out.runs < 1) line.fail("runs must be at least 1");
  if (!(out.seconds > 0)) line.fail("seconds must be above 0");
  return out;
}

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

double total_seconds(const std::vector<GpuTime>& lines) {
  double sum = 0;
  for (const GpuTime& line : lines) sum += line.seconds;
  return sum;
}

// The lines that are for one of the experiments.
std::vector<GpuTime> lines_of(const std::vector<GpuTime>& lines,
                              const std::vector<std::string>& experiments) {
  std::vector<std::string> known;
  std::vector<GpuTime> out;
  for (const GpuTime& line : lines) {
    bool asked = experiments.empty();
    for (const std::string& name : line.experiments) {
      if (!is_in(known, name)) known.push_back(name);
      asked |= is_in(experiments, name);
    }
    if (asked) out.push_back(line);
  }
  for (const std::string& name : experiments) {
    if (is_in(known, name)) continue;
    throw std::runtime_error(fmt::format(
        "no line is for an experiment \"{}\"; there are lines for {}", name, comma_list(known)));
  }
  return out;
}

}  // namespace

std::vector<GpuTime> read_gpu_time(const std::filesystem::path& path) {
  std::vector<GpuTime> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(parse_gpu_time(line, fmt::format("{}:{}", path.string(), lines.size() + 1)));
  }
  if (lines.empty()) throw std::runtime_error(path.string() + " has no line");
  return lines;
}

std::string gpu_time_markdown(const std::vector<GpuTime>& lines,
                              const std::vector<std::string>& experiments) {
  std::vector<std::string> commands, runs, seconds, commits;
  const std::vector<GpuTime> shown = lines_of(lines, experiments);
  for (const GpuTime& line : shown) {
    std::vector<std::string> others;
    for (const std::string& name : line.experiments) {
      if (!experiments.empty() && !is_in(experiments, name)) others.push_back(name);
    }
    commands.push_back(markdown_code(line.command) +
                       (others.empty()
                            ? ""
                            : fmt::format(" (shared with {})", markdown_text(comma_list(others)))));
    runs.push_back(with_commas(line.runs));
    seconds.push_back(with_commas(std::llround(line.seconds)));
    commits.push_back(markdown_text(comma_list(line.commits)));
  }
  commands.push_back("total");
  runs.emplace_back();
  seconds.push_back(with_commas(std::llround(total_seconds(shown))));
  commits.emplace_back();
  MarkdownTable table;
  table.add("command", commands);
  table.add("runs", runs);
  table.add("GPU seconds", seconds);
  table.add("commits", commits);
  return table.text();
}

std::string gpu_minutes_markdown(const std::vector<GpuTime>& lines) {
  std::vector<std::string> gpus;
  for (const GpuTime& line : lines) {
    if (!is_in(gpus, line.gpu)) gpus.push_back(line.gpu);
  }
  const int64_t minutes = std::llround(total_seconds(lines) / 60);
  return fmt::format("All runs of the reproduction together took {} minute{} of one {}.\n",
                     with_commas(minutes), minutes == 1 ? "" : "s",
                     gpus.size() == 1 ? markdown_text(gpus[0])
                                      : fmt::format("GPU ({})", markdown_text(comma_list(gpus))));
}

}  // namespace hdetach::report
