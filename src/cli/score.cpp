// hdetach score: captions against references, as the COCO caption evaluation scores them.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/machine.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "tasks/caption_metrics.h"
#include "tasks/caption_metrics_meteor.h"
#include "tasks/caption_pairs.h"

namespace hdetach::cli {
namespace {

struct ScoreOptions {
  std::string references, candidates;
  std::string meteor_data = "/usr/share/wordnet";
  bool no_meteor = false;
  bool per_image = false;
  int threads = usable_cores();
  bool json = false;
};

// A metric under coco-caption's name.
struct Column {
  std::string name;
  double corpus;
  std::vector<double> per_image;
};

std::shared_ptr<const tasks::MeteorResources> load_meteor(const std::string& folder) {
  try {
    return tasks::load_meteor_resources(folder);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("{}; name another folder by --meteor-data, or leave METEOR out by --no-meteor",
                    error.what()));
  }
}

tasks::MeanScore score_rouge(const tasks::CountedCaptions& counted, const ScoreOptions& options) {
  try {
    return tasks::rouge_l(counted, options.threads);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", options.candidates, error.what()));
  }
}

std::vector<Column> score(const std::vector<tasks::CaptionPair>& images,
                          const ScoreOptions& options) {
  std::vector<Column> columns;
  const tasks::CountedCaptions counted = tasks::count_ngrams(images);
  tasks::MeanScore rouge = score_rouge(counted, options);  // first: it may find captions too long
  const tasks::BleuScore bleu = tasks::bleu(counted);
  for (size_t n = 0; n < tasks::kLongestNgram; ++n) {
    Column column{fmt::format("Bleu_{}", n + 1), bleu.corpus[n], {}};
    for (const auto& scores : bleu.per_image) column.per_image.push_back(scores[n]);
    columns.push_back(std::move(column));
  }
  if (!options.no_meteor) {
    const auto resources = load_meteor(options.meteor_data);
    const tasks::MeteorOptions meteor;
    for (const std::string& reason : tasks::meteor_modules_off(*resources, meteor)) {
      print(stderr, "hdetach: METEOR without {}\n", reason);
    }
    tasks::MeteorScore scores = tasks::meteor(images, *resources, meteor, options.threads);
    columns.push_back({"METEOR", scores.corpus, std::move(scores.per_image)});
  }
  columns.push_back({"ROUGE_L", rouge.corpus, std::move(rouge.per_image)});
  tasks::CiderScore cider = tasks::cider(counted);
  columns.push_back({"CIDEr", cider.cider_d.corpus, std::move(cider.cider_d.per_image)});
  columns.push_back({"CIDEr_plain", cider.plain.corpus, std::move(cider.plain.per_image)});
  return columns;
}

void print_json(const std::vector<tasks::CaptionPair>& images, const std::vector<Column>& columns,
                const ScoreOptions& options) {
  nlohmann::ordered_json json = {{"images", images.size()}};
  for (const Column& column : columns) json[column.name] = column.corpus;
  if (options.per_image) {
    json["per_image"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < images.size(); ++i) {
      nlohmann::ordered_json row = {{"image_id", images[i].image_id}};
      for (const Column& column : columns) row[column.name] = column.per_image[i];
      json["per_image"].push_back(std::move(row));
    }
  }
  print("{}\n", json.dump());
}

void print_table(const std::vector<tasks::CaptionPair>& images, const std::vector<Column>& columns,
                 const ScoreOptions& options) {
  if (!options.per_image) {
    print("{} images\n", images.size());
    for (const Column& column : columns) print("{:<11}  {:.3f}\n", column.name, column.corpus);
    return;
  }
  print("{:>20}", "image");
  for (const Column& column : columns) print("  {:>11}", column.name);
  for (size_t i = 0; i < images.size(); ++i) {
    print("\n{:>20}", images[i].image_id);
    for (const Column& column : columns) print("  {:>11.3f}", column.per_image[i]);
  }
  print("\n{:>20}", fmt::format("all {}", images.size()));
  for (const Column& column : columns) print("  {:>11.3f}", column.corpus);
  print("\n");
}

void run_score(const ScoreOptions& options) {
  const std::vector<tasks::CaptionPair> images =
      tasks::read_caption_pairs(options.references, options.candidates, options.threads);
  const std::vector<Column> columns = score(images, options);
  options.json ? print_json(images, columns, options) : print_table(images, columns, options);
}

}  // namespace

void register_score(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "score", "Score captions against references: BLEU, METEOR, ROUGE-L, CIDEr");
  auto options = std::make_shared<ScoreOptions>();
  command
      ->add_option("--references", options->references,
                   "Annotations of COCO: {\"annotations\": [{\"image_id\", \"caption\"}, ...]}")
      ->required();
  command
      ->add_option("--candidates", options->candidates,
                   "Results to score: [{\"image_id\", \"caption\"}, ...]")
      ->required();
  CLI::Option* data = command
                          ->add_option("--meteor-data", options->meteor_data,
                                       "Folder of METEOR's own tables, or of WordNet's")
                          ->capture_default_str();
  command->add_flag("--no-meteor", options->no_meteor, "Leave METEOR out")->excludes(data);
  command->add_flag("--per-image", options->per_image, "Print the scores of every image too");
  add_threads(*command, options->threads, "Threads; the scores do not depend on it")
      ->default_str(std::to_string(options->threads));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run_score(*options); });
}

}  // namespace hdetach::cli
