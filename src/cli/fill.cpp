// hdetach fill FILE...: the blocks of Markdown files between markers, filled in from the run
// folders that the markers name, so that no number is typed by hand.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "cli/output.h"
#include "cli/report_page.h"
#include "cli/subcommands.h"
#include "formats/files.h"
#include "report/documents/filled_document.h"
#include "report/documents/result_folders.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;

struct FillOptions {
  std::vector<fs::path> files;
  bool check = false;
};

// A file and what it should be.
struct FillTarget {
  fs::path path;
  std::string before;
  report::FilledDocument document;
};

bool file_is(const fs::path& path, const std::string& content) {
  std::error_code error;
  return fs::is_regular_file(path, error) && files::read(path) == content;
}

// The pictures that are not what the results say, each once. Two blocks may share a picture, as
// long as it is the same.
class StalePictures {
 public:
  void add(const fs::path& document, const report::FilledBlock& block) {
    if (!block.picture) return;
    const auto [known, is_new] = svg_.emplace(block.picture->path, block.picture->svg);
    if (!is_new && known->second != block.picture->svg) {
      throw std::runtime_error(
          fmt::format("{}:{}: another block has another picture of the name {}", document.string(),
                      block.line, known->first.string()));
    }
    if (is_new && !file_is(known->first, known->second)) stale_.push_back(known->first);
  }

  bool has(const report::FilledBlock& block) const {
    return block.picture &&
           std::find(stale_.begin(), stale_.end(), block.picture->path) != stale_.end();
  }

  void write() const {
    for (const fs::path& path : stale_) {
      if (path.has_parent_path()) files::make_folder(path.parent_path());
      files::write(path, svg_.at(path));
    }
  }

 private:
  std::map<fs::path, std::string> svg_;
  std::vector<fs::path> stale_;
};

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print_filled(const FillTarget& target, const StalePictures& pictures) {
  size_t blocks = 0, drawn = 0;
  for (const report::FilledBlock& block : target.document.blocks) {
    blocks += block.changed;
    drawn += pictures.has(block);
  }
  std::string what = "up to date";
  if (target.document.blocks.empty()) what = "no blocks";
  if (blocks + drawn > 0) {
    what = fmt::format("{} of {} changed, {} drawn", blocks,
                       counted(target.document.blocks.size(), "block"), counted(drawn, "picture"));
  }
  print("{}: {}\n", target.path.string(), what);
}

// Throws where something is not as it should be.
void check_filled(const std::vector<FillTarget>& targets, const StalePictures& pictures) {
  size_t wrong = 0;
  std::string stale_files;
  for (const FillTarget& target : targets) {
    const size_t before = wrong;
    for (const report::FilledBlock& block : target.document.blocks) {
      const auto say = [&](const std::string& what) {
        print("{}:{}: {} is not what the results say\n", target.path.string(), block.line, what);
        ++wrong;
      };
      if (block.changed) say(block.marker);
      if (pictures.has(block)) say(block.picture->path.string());
    }
    if (wrong > before) stale_files += " " + target.path.string();
  }
  if (wrong > 0) {
    flush(stdout);
    throw std::runtime_error(
        fmt::format("out of date in {}; run hdetach fill{}", counted(wrong, "place"), stale_files));
  }
}

void fill(const FillOptions& options) {
  report::ResultFolders results;
  std::vector<FillTarget> targets;
  StalePictures pictures;
  for (const fs::path& path : options.files) {
    FillTarget target{path, files::read(path), {}};
    target.document = report::filled(target.before, path, results);
    for (const report::FilledBlock& block : target.document.blocks) pictures.add(path, block);
    targets.push_back(std::move(target));
  }
  print_notices(results.notices());
  if (options.check) return check_filled(targets, pictures);
  pictures.write();
  for (const FillTarget& target : targets) {
    if (target.document.text != target.before) files::write(target.path, target.document.text);
    print_filled(target, pictures);
  }
}

}  // namespace

void register_fill(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "fill", "Fill results of run folders into Markdown files, between markers");
  auto options = std::make_shared<FillOptions>();
  command
      ->add_option("FILE", options->files,
                   "Markdown files; docs/report.md says which blocks they can have")
      ->required();
  command->add_flag("--check", options->check,
                    "Write nothing; exit code 1 where a block or a picture is not what the "
                    "results say");
  command->callback([options] { fill(*options); });
}

}  // namespace hdetach::cli
