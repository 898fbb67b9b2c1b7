#include "report/run_lines.h"

#include <fmt/core.h>

#include <exception>
#include <stdexcept>

#include "formats/files.h"
#include "formats/json_object.h"

namespace hdetach::report {
namespace {

constexpr int kNoticesOfAFile = 3;
constexpr int kDeepest = 16;

// The notices of one file: the first few in words, the others as a number.
class FileNotices {
 public:
  FileNotices(const std::filesystem::path& path, Notices& notices)
      : path_(path), notices_(notices) {}
  ~FileNotices() {
    if (count_ > kNoticesOfAFile) {
      notices_.add(fmt::format("{}: {} more lines are left out or replaced", path_.string(),
                               count_ - kNoticesOfAFile));
    }
  }
  void add(const std::string& text) {
    if (++count_ <= kNoticesOfAFile) notices_.add(text);
  }

 private:
  const std::filesystem::path& path_;
  Notices& notices_;
  int count_ = 0;
};

}  // namespace

void check_nesting(std::string_view json, const std::string& place) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (in_string) {
      if (json[i] == '\\') ++i;
      in_string = i >= json.size() || json[i] != '"';
    } else if (json[i] == '"') {
      in_string = true;
    } else if (json[i] == '{' || json[i] == '[') {
      if (++depth > kDeepest) throw std::runtime_error(place + ": nested too deeply");
    } else if (json[i] == '}' || json[i] == ']') {
      --depth;
    }
  }
}

std::string read_text(const std::filesystem::path& path) {
  return files::read_regular(path, kLargestFile);
}

void for_each_line(const std::filesystem::path& path, Notices* notices,
                   const std::function<void(std::string_view, const std::string&)>& use) {
  const std::string text = read_text(path);
  Notices unused;
  FileNotices own(path, notices != nullptr ? *notices : unused);
  const std::string name = path.string() + ":";
  size_t start = 0;
  int number = 1;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1, ++number) {
    const std::string place = name + std::to_string(number);
    const std::string_view line = std::string_view(text).substr(start, end - start);
    if (notices == nullptr) {
      use(line, place);
      continue;
    }
    try {
      if (line.size() > kLongestLine) {
        throw std::runtime_error(fmt::format("{}: longer than {} MiB", place, kLongestLine >> 20));
      }
      check_nesting(line, place);
      use(line, place);
    } catch (const std::exception& problem) {
      own.add(fmt::format("{}; the line is left out", problem.what()));
    }
  }
  if (start < text.size()) {
    own.add(fmt::format("{}{}: half-written, its writer was cut off; the line is left out", name,
                        number));
  }
}

std::vector<ObjectLine> read_object_lines(const std::filesystem::path& path, Notices& notices) {
  std::vector<ObjectLine> lines;
  for_each_line(path, &notices, [&](std::string_view line, const std::string& place) {
    const auto fail = [&](const char* problem) {
      throw std::runtime_error(fmt::format("{}: {}", place, problem));
    };
    const auto json = strict_json(line);
    if (json.is_discarded()) fail("not JSON");
    if (!json.is_object()) fail("not a JSON object");
    const auto epoch = json.find("epoch");
    const bool has_epoch = epoch != json.end() && epoch->is_number_integer();
    lines.push_back({std::string(line), has_epoch ? epoch->get<int64_t>() : -1});
  });
  return lines;
}

}  // namespace hdetach::report
