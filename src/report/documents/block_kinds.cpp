#include "report/documents/block_kinds.h"

#include <fmt/core.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "report/documents/curves_picture.h"
#include "report/documents/delay_picture.h"
#include "report/documents/gpu_time.h"
#include "report/documents/markdown.h"
#include "report/documents/pair_table.h"
#include "report/documents/result_tables.h"

namespace hdetach::report {
namespace {

namespace fs = std::filesystem;

// One block and what it is made from.
struct BlockCall {
  const std::vector<std::string>& words;
  const std::optional<int64_t> until;  // the last epoch that counts
  const fs::path& folder;
  ResultFolders& results;

  fs::path path(size_t word) const { return (folder / words[word]).lexically_normal(); }
  std::vector<std::string> from(size_t word) const {
    return {words.begin() + static_cast<std::ptrdiff_t>(word), words.end()};
  }
  Experiment runs(const std::vector<std::string>& settings) const {
    Experiment chosen = results.choose(path(1), settings);
    if (until) cut(chosen, *until);
    return chosen;
  }
};

// Takes "until=N" out of the words.
std::optional<int64_t> take_until(std::vector<std::string>& words) {
  const std::string key = "until=";
  std::optional<int64_t> until;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].compare(0, key.size(), key) != 0) continue;
    const char* const begin = words[i].data() + key.size();
    const char* const end = words[i].data() + words[i].size();
    int64_t epoch = 0;
    const auto [last, error] = std::from_chars(begin, end, epoch);
    if (error != std::errc() || last != end || epoch < 1 || until) {
      throw std::runtime_error(
          fmt::format("\"{}\" is no last epoch; write until=N once, with N at least 1", words[i]));
    }
    until = epoch;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  return until;
}

std::vector<std::string> split_at(const std::string& text, char sign) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == sign) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

BlockContent picture_block(const BlockCall& call, const std::string& words, std::string svg) {
  const std::string& name = call.words[2];
  if (fs::path(name).extension() != ".svg") {
    throw std::runtime_error(
        fmt::format("the picture {} must have a name that ends with .svg", name));
  }
  return {fmt::format("![{}]({})\n", markdown_text(words), name),
          BlockPicture{call.path(2), std::move(svg)}};
}

BlockContent settings_block(const BlockCall& call) {
  return {settings_markdown(call.runs(call.from(2))), {}};
}

BlockContent runs_block(const BlockCall& call) {
  return {runs_markdown(call.runs(call.from(2))), {}};
}

BlockContent pairs_block(const BlockCall& call) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<std::string> settings;
  for (const std::string& word : call.from(2)) {
    const std::vector<std::string> names = split_at(word, ':');
    if (names.size() != 2) {
      throw std::runtime_error(fmt::format("\"{}\" is no pair of settings; write A:B", word));
    }
    pairs.emplace_back(names[0], names[1]);
    settings.insert(settings.end(), names.begin(), names.end());
  }
  return {pairs_markdown(call.runs(settings), pairs), {}};
}

BlockContent delays_block(const BlockCall& call) {
  return {delays_markdown(call.runs(call.from(2))), {}};
}

BlockContent scores_block(const BlockCall& call) {
  return {scores_markdown(call.runs(call.from(2))), {}};
}

BlockContent curves_block(const BlockCall& call) {
  std::vector<Experiment> panels;
  for (const std::string& panel : call.from(3)) panels.push_back(call.runs(split_at(panel, ',')));
  if (panels.empty()) panels.push_back(call.runs({}));
  return picture_block(call, curves_words(panels), curves_svg(panels));
}

BlockContent delay_curve_block(const BlockCall& call) {
  const Experiment runs = call.runs(call.from(3));
  return picture_block(call, delays_words(runs), delays_svg(runs));
}

BlockContent gpu_time_block(const BlockCall& call) {
  return {gpu_time_markdown(read_gpu_time(call.path(1)), call.from(2)), {}};
}

BlockContent gpu_minutes_block(const BlockCall& call) {
  return {gpu_minutes_markdown(read_gpu_time(call.path(1))), {}};
}

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

constexpr struct BlockKind {
  const char *name, *arguments;
  size_t least, most;  // arguments, until=N apart
  bool takes_until;
  BlockContent (*make)(const BlockCall& call);
} kBlockKinds[] = {
    {"settings", "FOLDER [until=N] SETTING...", 1, kAnyNumber, true, settings_block},
    {"runs", "FOLDER [until=N] SETTING...", 1, kAnyNumber, true, runs_block},
    {"pairs", "FOLDER [until=N] A:B...", 2, kAnyNumber, true, pairs_block},
    {"delays", "FOLDER SETTING...", 1, kAnyNumber, false, delays_block},
    {"scores", "FOLDER SETTING...", 1, kAnyNumber, false, scores_block},
    {"curves", "FOLDER PICTURE.svg SETTING,SETTING...", 2, kAnyNumber, false, curves_block},
    {"delay-curve", "FOLDER PICTURE.svg SETTING...", 2, kAnyNumber, false, delay_curve_block},
    {"gpu-time", "FILE EXPERIMENT...", 1, kAnyNumber, false, gpu_time_block},
    {"gpu-minutes", "FILE", 1, 1, false, gpu_minutes_block},
};

}  // namespace

BlockContent block_content(const std::vector<std::string>& words, const fs::path& folder,
                           ResultFolders& results) {
  const std::string name = words.empty() ? "" : words[0];
  std::string known;
  for (const BlockKind& kind : kBlockKinds) {
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
    if (name != kind.name) continue;
    std::vector<std::string> own = words;
    const auto until = kind.takes_until ? take_until(own) : std::nullopt;
    const size_t arguments = own.size() - 1;
    if (arguments < kind.least || arguments > kind.most) {
      throw std::runtime_error(fmt::format("{} has {} argument{}; write {} {}", name, arguments,
                                           arguments == 1 ? "" : "s", name, kind.arguments));
    }
    return kind.make({own, until, folder, results});
  }
  throw std::runtime_error(fmt::format("no kind of block \"{}\"; there are {}", name, known));
}

}  // namespace hdetach::report
