#include "cli/caption_subjects.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "formats/files.h"
#include "formats/jpeg.h"
#include "formats/mapped_file.h"
#include "formats/safetensors.h"
#include "models/resnet.h"
#include "tasks/caption_files.h"
#include "tasks/coded_features.h"
#include "tasks/squash.h"
#include "tasks/tensor_features.h"
#include "train/make_task.h"

namespace hdetach::cli {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, tasks::Split> kSplits = {
    {"train", tasks::Split::kTrain}, {"val", tasks::Split::kValid}, {"test", tasks::Split::kTest}};

// COCO's annotations.
void write_references(const std::vector<tasks::CaptionedImage>& images, const fs::path& path) {
  auto annotations = nlohmann::ordered_json::array(), list = annotations;
  for (const tasks::CaptionedImage& image : images) {
    list.push_back({{"id", image.id}});
    for (const std::string& caption : image.references) {
      annotations.push_back(
          {{"image_id", image.id}, {"id", annotations.size() + 1}, {"caption", caption}});
    }
  }
  const nlohmann::ordered_json file = {{"images", list}, {"annotations", annotations}};
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;  // what is not UTF-8
  files::write(path, file.dump(-1, ' ', false, kReplace) + "\n");
}

// Features made when they are asked for: the network is slow, and those of many files are large.
class JpegFeatures : public tasks::ImageFeatures {
 public:
  JpegFeatures(std::vector<std::string> files, const ResNetWeights& weights, bool on_cuda,
               int64_t positions, bool pooled)
      : files_(std::move(files)),
        network_(weights, on_cuda),
        side_(ResNet::side(positions)),
        positions_(pooled ? 1 : positions) {}

  int64_t images() const override { return static_cast<int64_t>(files_.size()); }
  int64_t positions() const override { return positions_; }
  int64_t channels() const override { return ResNet::kChannels; }
  void read(int64_t image, float* to) const override {
    std::vector<float> pixels(side_ * side_ * 3);
    tasks::squash(jpeg::decode(files::read(files_[image]), files_[image]), side_, pixels.data());
    const std::vector<float> made = network_.features(pixels, side_, positions_ == 1);
    std::copy(made.begin(), made.end(), to);
  }

 private:
  std::vector<std::string> files_;
  ResNet network_;
  int64_t side_;  // of the square that an image becomes, in pixels
  int64_t positions_;
};

// How the features came about that a run was trained on.
struct Origin {
  int64_t positions;
  std::string network, weights;  // as hdetach features notes them; empty: it did not make them
};

std::optional<Origin> origin_of_features(const fs::path& folder) {
  for (const char* name : {"train", "valid", "val", "test"}) {
    const fs::path path = folder / fmt::format("{}.safetensors", name);
    if (!fs::exists(path)) continue;
    const files::MappedFile file(path);
    const safetensors::Contents contents = safetensors::read_header(file.bytes(), path.string());
    const safetensors::Array* features = contents.find(tasks::kFeaturesArray);
    if (features == nullptr) continue;
    const auto noted = [&](const char* key) {
      const auto found = contents.metadata.find(key);
      return found == contents.metadata.end() ? std::string() : found->second;
    };
    return Origin{features->shape.size() == 3 ? features->shape[1] : 1, noted("network"),
                  noted("weights")};
  }
  const fs::path coded = folder / "feat";
  if (!fs::exists(coded / "FORMAT.json")) return std::nullopt;
  return Origin{tasks::open_coded_features(coded, /*spatial=*/true)->positions(), "", ""};
}

int64_t positions_for(const train::Config& config, const std::string& run,
                      const FileOptions& options, const std::optional<Origin>& origin) {
  const int64_t asked = options.positions;
  if (!origin && asked == 0) {
    throw CLI::ValidationError(
        fmt::format("--positions is needed: {}, the data of {}, has no features that tell "
                    "on which the run was trained",
                    config.data, run));
  }
  if (origin && asked != 0 && asked != origin->positions) {
    throw CLI::ValidationError(fmt::format("--positions is {}, but {} was trained on {} ({})",
                                           asked, run, origin->positions, config.data));
  }
  const int64_t positions = origin ? origin->positions : asked;
  if (positions != 1 && positions != 49 && positions != 196) {
    throw CLI::ValidationError(
        fmt::format("--image: {} was trained on features of {} positions ({}), but those of files "
                    "have 1, 49 or 196",
                    run, positions, config.data));
  }
  if (positions == 1 && config.model == "soft-attention") {
    throw CLI::ValidationError(fmt::format(
        "--positions is 1, but {} is a run of soft-attention; it looks at 49 or 196", run));
  }
  return positions;
}

void check_picture_names(const std::vector<Subject>& subjects) {
  std::map<std::string, std::string> files;
  for (const Subject& subject : subjects) {
    const auto [other, is_new] = files.emplace(subject.picture, subject.name);
    if (is_new) continue;
    throw CLI::ValidationError(
        fmt::format("--image: the pictures of {} and {} would both be {}.svg; caption them apart",
                    other->second, subject.name, subject.picture));
  }
}

}  // namespace

Subjects subjects_of_split(const train::Config& config, const SplitOptions& options) {
  train::Config here = config;
  if (!options.data.empty()) here.data = options.data;
  const tasks::CaptionSplit split =
      train::make_caption_split(here, kSplits.at(options.split), options.limit);
  if (split.images.empty()) {
    throw std::runtime_error(
        fmt::format("{} has no image with features in its {} split; name another by --split",
                    here.data, options.split));
  }
  if (!options.references.empty()) write_references(split.images, options.references);
  Subjects subjects{split.features, {}};
  for (size_t i = 0; i < split.images.size(); ++i) {
    const tasks::CaptionedImage& image = split.images[i];
    const std::string id = std::to_string(image.id);
    Subject subject{id, image.id, image.row, {}, id};
    if (!options.images.empty()) {
      if (split.files[i].empty()) {
        throw CLI::ValidationError(fmt::format(
            "--images {}: {} does not say in which file an image is, as dataset*.json does",
            options.images, here.data));
      }
      subject.jpeg = fs::path(options.images) / split.files[i];
    }
    subjects.list.push_back(std::move(subject));
  }
  return subjects;
}

Subjects subjects_in_files(const train::Config& config, const std::string& run,
                           const FileOptions& options) {
  if (config.data == "generated") {
    throw CLI::ValidationError(
        fmt::format("--image: {} was trained on made-up features (--data generated), which no "
                    "image has; use a run trained on those of hdetach features",
                    run));
  }
  Subjects subjects;
  for (const std::string& file : options.files) {
    const auto row = static_cast<int64_t>(subjects.list.size());
    subjects.list.push_back({file, 0, row, file, fs::path(file).stem().string()});
  }
  if (options.pictures) check_picture_names(subjects.list);
  const std::optional<Origin> origin = origin_of_features(config.data);
  const int64_t positions = positions_for(config, run, options, origin);
  const ResNetWeights weights = read_resnet_weights(options.weights);
  const std::string checksum = fmt::format("{:016x}", weights.checksum());
  if (origin && !origin->weights.empty() && origin->weights != checksum) {
    throw std::runtime_error(fmt::format(
        "--weights {} ({}, {}) did not make the features in {} ({}, {}); name the file "
        "that did",
        options.weights, weights.name, checksum, config.data, origin->network, origin->weights));
  }
  subjects.features = std::make_shared<JpegFeatures>(
      options.files, weights, config.device == "cuda", positions, config.model == "show-tell");
  return subjects;
}

}  // namespace hdetach::cli
