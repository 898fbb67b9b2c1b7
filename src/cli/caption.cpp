// hdetach caption: what the best model of a captioning run says of images.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/caption_subjects.h"
#include "cli/interrupt.h"
#include "cli/live_line.h"
#include "cli/machine.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "cli/trained_run.h"
#include "formats/files.h"
#include "formats/jpeg.h"
#include "report/attention_picture.h"
#include "report/summary.h"
#include "tasks/vocabulary.h"
#include "train/caption_evaluation.h"
#include "train/caption_run.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;

struct CaptionOptions {
  std::string run;
  SplitOptions split;
  FileOptions files;
  int64_t beam = 0;  // 0 means the run's
  double length_power = 0;
  std::string attention;
  std::string device;  // empty means where it was trained, where that is to be had
  int threads = usable_cores();
  bool json = false;
};

void write_picture(const fs::path& folder, const Subject& subject, const Found& found,
                   const tasks::Vocabulary& words) {
  report::AttentionPicture picture;
  picture.title = subject.name;
  if (!subject.jpeg.empty()) {
    picture.jpeg = files::read(subject.jpeg);
    const jpeg::Image image = jpeg::decode(picture.jpeg, subject.jpeg.string());
    picture.width = image.width;
    picture.height = image.height;
  }
  for (const int32_t word : found.words) picture.words.push_back(words.words()[word]);
  picture.attention = found.attention;
  files::write(folder / (subject.picture + ".svg"), report::to_svg(picture));
}

// Prints captions one by one, or all at the end as JSON: of ids as COCO has it, of files with
// their names.
class Printer {
 public:
  Printer(bool ids, bool json) : ids_(ids), json_(json) {}

  void add(const Subject& subject, const std::string& caption) {
    if (!json_) {
      print("{}  {}\n", subject.name, caption);
      flush_output();
    } else if (ids_) {
      list_.push_back({{"image_id", subject.id}, {"caption", caption}});
    } else {
      list_.push_back({{"image", subject.name}, {"caption", caption}});
    }
  }
  void end() const {
    // A file's name may have bytes that are not UTF-8.
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    if (json_) print("{}\n", list_.dump(-1, ' ', false, kReplace));
  }

 private:
  bool ids_, json_;
  nlohmann::ordered_json list_ = nlohmann::ordered_json::array();
};

// Shows the time left, and says no once a signal came.
class Watch {
 public:
  explicit Watch(std::string name) : name_(std::move(name)), signal_(watch_signals()) {}

  bool go_on(double share) {
    if (share > 0 && line_.due()) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
      line_.show(fmt::format("{}  {:.0f}%  {} left", name_, 100 * share,
                             report::duration(passed.count() * (1 - share) / share)));
    }
    return *signal_ == 0;
  }
  void clear() { line_.clear(); }
  int signal() const { return *signal_; }

 private:
  std::string name_;
  const volatile std::sig_atomic_t* signal_;
  LiveLine line_{stderr, LiveLine::Elsewhere::kSilent};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void check_options(const CaptionOptions& options, const train::Config& config) {
  if (config.task != "caption") {
    throw CLI::ValidationError(
        fmt::format("RUN {} is a run of task {}; captions need one of hdetach train caption",
                    options.run, config.task));
  }
  if (options.split.split.empty() == options.files.files.empty()) {
    throw CLI::ValidationError(
        "either --split (train, val or test) or --image FILE... is needed, and not both");
  }
  if (!options.attention.empty() && config.model != "soft-attention") {
    throw CLI::ValidationError(
        fmt::format("--attention {}: the model of {} is {}, which looks at an image as a whole; "
                    "use a run of soft-attention",
                    options.attention, options.run, config.model));
  }
}

void run_caption(CaptionOptions options) {
  train::Config config = read_trained_run(options.run);
  check_options(options, config);
  choose_device(options.device, config);
  set_threads({options.threads, options.threads});
  options.files.pictures = !options.attention.empty();

  const tasks::Vocabulary words = train::read_words(options.run);
  const bool is_split = options.files.files.empty();
  const Subjects subjects = is_split ? subjects_of_split(config, options.split)
                                     : subjects_in_files(config, options.run, options.files);
  const auto model = train::load_captioner(config, options.run, words, *subjects.features);
  if (!options.attention.empty()) files::make_folder(options.attention);

  SearchOptions search;
  search.beam = options.beam > 0 ? options.beam : config.beam;
  search.most_words = config.most_words;
  search.length_power = options.length_power;
  search.attention = !options.attention.empty();
  std::vector<int64_t> rows;
  for (const Subject& subject : subjects.list) rows.push_back(subject.row);
  Printer printer(is_split, options.json);
  Watch watch(options.run);
  const auto take = [&](size_t i, const Found& found) {
    const Subject& subject = subjects.list[i];
    if (search.attention) write_picture(options.attention, subject, found, words);
    watch.clear();
    printer.add(subject, words.text(found.words));
  };
  const bool done = train::find_captions(
      config, *model, *subjects.features, rows, search, take,
      [&](double share) { return watch.go_on(share); },
      is_split ? train::kImagesAtOnce : 1);  // of files each takes long, and is told at once
  watch.clear();
  if (!done) throw ExitCode{128 + watch.signal()};
  printer.end();
}

void add_split_options(CLI::App& command, SplitOptions& options) {
  CLI::Option* split =
      command.add_option("--split", options.split, "Images of the run's data: train, val or test")
          ->check(CLI::IsMember({"train", "val", "test"}));
  command
      .add_option("--data", options.data, "Folder of captions and features (default: the run's)")
      ->needs(split);
  command.add_option("--limit", options.limit, "The first images of the split (default: all)")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}))
      ->needs(split);
  command
      .add_option("--references", options.references,
                  "File for what people say of these images, for hdetach score --references")
      ->needs(split);
  command
      .add_option(
          "--images", options.images,
          "Folder of the image files that the data lists, for --attention (default: a plain "
          "ground)")
      ->needs(split);
}

void add_file_options(CLI::App& command, FileOptions& options) {
  CLI::Option* image = command.add_option("--image", options.files, "JPEG files");
  CLI::Option* weights = command.add_option(
      "--weights", options.weights,
      "Weights of the network that makes features of them, as hdetach features takes them");
  image->needs(weights);
  weights->needs(image);
  command
      .add_option("--positions", options.positions,
                  "Of the features that the run was trained on: 1, 49 or 196 (default: as its data "
                  "has them)")
      ->check(CLI::IsMember(std::vector<int64_t>{1, 49, 196}))
      ->needs(image);
}

}  // namespace

void register_caption(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "caption", "Caption images by the best model of a run of hdetach train caption");
  auto options = std::make_shared<CaptionOptions>();
  command->add_option("RUN", options->run, "Folder of the run")->required();
  add_split_options(*command, options->split);
  add_file_options(*command, options->files);
  command->add_option("--beam", options->beam, "Width of the search (default: the run's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  command
      ->add_option("--length-power", options->length_power,
                   "Captions compare by log probability / (words + 1)^this: 0 the likeliest, 1 the "
                   "likeliest by word")
      ->check(number_in(0.0, 100.0))
      ->capture_default_str();
  CLI::Option* attention =
      command->add_option("--attention", options->attention,
                          "Folder for pictures of where the model looked, one SVG file an image "
                          "(soft-attention only)");
  command->get_option("--images")->needs(attention);
  command
      ->add_option("--device", options->device,
                   "cpu or cuda (default: where the run was trained, else cpu)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  add_threads(*command, options->threads, "Threads; the result does not depend on it")
      ->default_str(std::to_string(options->threads));
  command->add_flag(
      "--json", options->json,
      "Print one JSON list; of a split as COCO has it, for hdetach score --candidates");
  command->callback([options] { run_caption(*options); });
}

}  // namespace hdetach::cli
