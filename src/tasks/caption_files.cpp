#include "tasks/caption_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "formats/files.h"
#include "formats/karpathy_json.h"
#include "formats/mapped_file.h"
#include "formats/tab_table.h"
#include "formats/toml_text.h"
#include "tasks/coded_features.h"
#include "tasks/tensor_features.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{1} << 31;  // of a table unpacked
constexpr char kCaptions[] = "_captions.tsv", kImages[] = "_images.tsv", kPacked[] = ".gz";

[[noreturn]] void fail(const fs::path& place, const std::string& what) {
  throw std::runtime_error(place.string() + ": " + what);
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The files of the folder whose names pass, in the order of their names.
template <class Passes>
std::vector<fs::path> files_in(const fs::path& folder, Passes passes) {
  std::error_code error;
  std::vector<fs::path> found;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (passes(at->path().filename().string())) found.push_back(at->path());
  }
  if (error) fail(folder, "cannot read the folder: " + error.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Split> split_named(std::string_view name) {
  if (name == "train" || name == "restval") return Split::kTrain;
  if (name == "val") return Split::kValid;
  if (name == "test") return Split::kTest;
  return std::nullopt;
}

std::string unknown_split(std::string_view name) {
  return fmt::format("split {} is not train, restval, val or test", toml::excerpt(name));
}

void read_karpathy(const fs::path& path, const std::function<void(ListedImage)>& take) {
  const files::MappedFile file(path);
  std::unordered_set<int64_t> ids;
  karpathy::read(file.bytes(), path.string(), [&](karpathy::Image image) {
    const std::optional<Split> split = split_named(image.split);
    if (!split) fail(path, fmt::format("image id {}: {}", image.id, unknown_split(image.split)));
    if (!ids.insert(image.id).second) fail(path, fmt::format("id {} stands twice", image.id));
    take({image.id, *split, std::nullopt, fs::path(image.folder) / image.file,
          std::move(image.captions), std::move(image.words)});
  });
}

std::vector<ListedImage> read_image_table(const fs::path& path) {
  const std::string text = files::read_gzip(path, kMostBytes);
  TabTable table(text, path.string(), 4);
  if (!table.next() || table.field(0) != "image_id") {
    fail(path, "the first line must have titles, the first of them image_id");
  }
  std::vector<ListedImage> images;
  std::unordered_set<int64_t> rows;
  while (table.next()) {
    ListedImage image;
    image.id = table.whole(0);
    if (image.id < 0) table.fail("an id cannot be negative");
    const std::optional<Split> split = split_named(table.field(1));
    if (!split) table.fail(unknown_split(table.field(1)));
    image.split = *split;
    image.row = table.whole(3);
    if (*image.row < -1) table.fail("a row is -1 or more");
    if (*image.row >= 0 && !rows.insert(*image.row).second) {
      table.fail(fmt::format("row {} stands twice", *image.row));
    }
    images.push_back(std::move(image));
  }
  return images;
}

void read_tables(const fs::path& captions_path, const fs::path& images_path,
                 const std::function<void(ListedImage)>& take) {
  std::vector<ListedImage> images = read_image_table(images_path);
  std::unordered_map<int64_t, ListedImage*> by_id;
  for (ListedImage& image : images) {
    if (!by_id.emplace(image.id, &image).second) {
      fail(images_path, fmt::format("id {} stands twice", image.id));
    }
  }
  const std::string text = files::read_gzip(captions_path, kMostBytes);
  TabTable table(text, captions_path.string(), 2);
  while (table.next()) {
    const auto image = by_id.find(table.whole(0));
    if (image == by_id.end()) {
      table.fail(fmt::format("image {} is not in {}", table.field(0), images_path.string()));
    }
    const std::string_view caption = table.field(1);
    if (caption.find_first_not_of(" \t") == std::string_view::npos) table.fail("no caption");
    image->second->captions.emplace_back(caption);
    image->second->words.emplace_back();
  }
  for (ListedImage& image : images) {
    if (image.captions.empty()) fail(images_path, fmt::format("id {} has no caption", image.id));
    take(std::move(image));
  }
}

}  // namespace

void read_captions(const fs::path& folder, const std::function<void(ListedImage)>& take) {
  const auto datasets = files_in(folder, [](const std::string& name) {
    return name.rfind("dataset", 0) == 0 && ends_with(name, ".json");
  });
  const auto tables = files_in(folder, [](const std::string& name) {
    return ends_with(name, kCaptions) || ends_with(name, std::string(kCaptions) + kPacked);
  });
  if (datasets.empty() && tables.empty()) {
    fail(folder, fmt::format("no captions are found; looked for dataset*.json, *{0} and *{0}{1}",
                             kCaptions, kPacked));
  }
  if (datasets.size() + tables.size() > 1) {
    const fs::path& first = datasets.empty() ? tables[0] : datasets[0];
    const fs::path& second = datasets.size() > 1 ? datasets[1] : tables.back();
    fail(folder, fmt::format("{} and {} both have captions; keep one", first.filename().string(),
                             second.filename().string()));
  }
  if (!datasets.empty()) return read_karpathy(datasets[0], take);
  std::string images = tables[0].string();
  images = images.substr(0, images.rfind(kCaptions)) + kImages;
  std::error_code ignored;  // what cannot be examined cannot be read, and that is said below
  if (!fs::exists(images, ignored) && fs::exists(images + kPacked, ignored)) images += kPacked;
  read_tables(tables[0], images, take);
}

FeatureFolder::FeatureFolder(const fs::path& folder, bool spatial) : name_(folder.string()) {
  const auto unfinished = files_in(folder, [](const std::string& name) {
    return name == "train.safetensors.part" || name == "valid.safetensors.part" ||
           name == "test.safetensors.part";
  });
  if (!unfinished.empty()) {
    fail(folder, fmt::format("{}: the features are not all there; hdetach features, started as "
                             "before, makes the others",
                             unfinished[0].filename().string()));
  }
  const auto tensors = files_in(folder, [](const std::string& name) {
    return name == "train.safetensors" || name == "valid.safetensors" ||
           name == "val.safetensors" || name == "test.safetensors";
  });
  const fs::path coded = folder / "feat";
  std::error_code ignored;  // what cannot be examined is not found
  const bool is_coded = fs::exists(coded / "FORMAT.json", ignored);
  if (tensors.empty() && !is_coded) {
    fail(folder,
         "no features are found; looked for train.safetensors, valid.safetensors, "
         "val.safetensors, test.safetensors and feat/FORMAT.json");
  }
  if (!tensors.empty() && is_coded) {
    fail(folder, fmt::format("{} and feat/FORMAT.json both have features; keep one",
                             tensors[0].filename().string()));
  }
  by_id_ = !is_coded;
  if (is_coded) {
    features_ = open_coded_features(coded, spatial);
  } else {
    TensorFeatures opened = open_tensor_features(tensors, spatial);
    features_ = std::move(opened.features);
    rows_ = std::move(opened.rows);
  }
}

std::optional<int64_t> FeatureFolder::row(const ListedImage& image) const {
  if (by_id_) {
    const auto found = rows_.find(image.id);
    return found == rows_.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }
  if (!image.row) {
    fail(name_,
         "feat/ has features by row, but the list of captions tells no rows; put features by id "
         "there, in train.safetensors and so on");
  }
  if (*image.row >= features_->images()) {
    fail(name_, fmt::format("image {} has row {}, but feat/ has features of {} images", image.id,
                            *image.row, features_->images()));
  }
  return *image.row < 0 ? std::nullopt : image.row;
}

}  // namespace hdetach::tasks
