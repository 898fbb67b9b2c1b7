#include "report/block_kinds.h"

#include <fmt/core.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "report/curves_picture.h"
#include "report/delay_picture.h"
#include "report/gpu_time.h"
#include "report/markdown.h"
#include "report/pair_table.h"
#include "report/result_tables.h"

namespace hdetach::report {
namespace {

namespace fs = std::filesystem;

// One block and what it is made from.
struct BlockCall {
  const std::vector<std::string>& words;
  const fs::path& folder;
  ResultFolders& results;

  fs::path path(size_t word) const { return (folder / words[word]).lexically_normal(); }
  std::vector<std::string> from(size_t word) const {
    return {words.begin() + static_cast<std::ptrdiff_t>(word), words.end()};
  }
  Experiment runs(const std::vector<std::string>& settings) const {
    return results.choose(path(1), settings);
  }
};

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
  size_t least, most;  // arguments
  BlockContent (*make)(const BlockCall& call);
} kBlockKinds[] = {
    {"settings", "FOLDER SETTING...", 1, kAnyNumber, settings_block},
    {"runs", "FOLDER SETTING...", 1, kAnyNumber, runs_block},
    {"pairs", "FOLDER A:B...", 2, kAnyNumber, pairs_block},
    {"delays", "FOLDER SETTING...", 1, kAnyNumber, delays_block},
    {"scores", "FOLDER SETTING...", 1, kAnyNumber, scores_block},
    {"curves", "FOLDER PICTURE.svg SETTING,SETTING...", 2, kAnyNumber, curves_block},
    {"delay-curve", "FOLDER PICTURE.svg SETTING...", 2, kAnyNumber, delay_curve_block},
    {"gpu-time", "FILE EXPERIMENT...", 1, kAnyNumber, gpu_time_block},
    {"gpu-minutes", "FILE", 1, 1, gpu_minutes_block},
};

}  // namespace

BlockContent block_content(const std::vector<std::string>& words, const fs::path& folder,
                           ResultFolders& results) {
  const std::string name = words.empty() ? "" : words[0];
  std::string known;
  for (const BlockKind& kind : kBlockKinds) {
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
    if (name != kind.name) continue;
    if (words.size() - 1 < kind.least || words.size() - 1 > kind.most) {
      throw std::runtime_error(fmt::format("{} has {} argument{}; write {} {}", name,
                                           words.size() - 1, words.size() == 2 ? "" : "s", name,
                                           kind.arguments));
    }
    return kind.make({words, folder, results});
  }
  throw std::runtime_error(fmt::format("no kind of block \"{}\"; there are {}", name, known));
}

}  // namespace hdetach::report
