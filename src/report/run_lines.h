// The text files of a run folder, of which any byte may be wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/notices.h"

namespace hdetach::report {

constexpr size_t kLongestLine = size_t{1} << 20;
constexpr size_t kLargestFile = size_t{1} << 27;

// The whole file. Throws std::runtime_error where it cannot be read, is no file (a pipe would never
// end), or has more than kLargestFile bytes.
std::string read_text(const std::filesystem::path& path);

// Throws where lists and objects lie too deep in each other: to copy them would take the whole
// stack.
void check_nesting(std::string_view json, const std::string& place);

// Calls use(line, place) for every line, with place as "metrics.jsonl:7". Without `notices` all
// that is thrown is thrown; with them a line that `use` throws on, a line beyond kLongestLine and a
// last line without its end are left out with a notice, a few for each file. A last line without
// its end is no error: its writer was cut off.
void for_each_line(const std::filesystem::path& path, Notices* notices,
                   const std::function<void(std::string_view line, const std::string& place)>& use);

// The lines that are JSON objects, as they are, for others to read. Others are left out with a
// notice.
struct ObjectLine {
  std::string text;
  int64_t epoch;  // the member of that name; -1 without
};
std::vector<ObjectLine> read_object_lines(const std::filesystem::path& path, Notices& notices);

}  // namespace hdetach::report
