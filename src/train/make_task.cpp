#include "train/make_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "formats/checksum.h"
#include "tasks/caption_files.h"
#include "tasks/copying.h"
#include "tasks/generated_captions.h"
#include "tasks/mnist_files.h"
#include "tasks/pixels.h"
#include "train/streams.h"

namespace hdetach::train {
namespace {

std::shared_ptr<const tasks::SequenceSet> copying_set(const Config& config, int64_t delay,
                                                      int64_t size, uint64_t seed) {
  const auto encoding =
      config.encoding == "onehot" ? tasks::Encoding::kOneHot : tasks::Encoding::kScalar;
  return std::make_shared<tasks::CopyingSet>(config.symbols, delay, encoding, size, seed);
}

tasks::Task make_mnist(const Config& config) {
  MnistFiles files = read_mnist(config.data);
  const auto train = std::make_shared<const MnistData>(std::move(files.train));
  const auto test = std::make_shared<const MnistData>(std::move(files.test));
  if (config.train_size + config.valid_size > train->size()) {
    throw ConfigError(
        fmt::format("train-size is {} and valid-size {}, but {} has {} training images; ask for "
                    "no more together",
                    config.train_size, config.valid_size, config.data, train->size()));
  }
  const int64_t pixels = train->rows * train->columns;
  std::vector<int64_t> order(pixels);
  std::iota(order.begin(), order.end(), 0);
  if (config.permute) {
    order = tasks::shuffled(pixels, stream_seed(config.permutation_seed, Stream::kPermutation));
  }
  const auto images = [&](const std::shared_ptr<const MnistData>& data, int64_t first,
                          int64_t count) {
    return std::make_shared<tasks::PixelSet>(data, first, count, order);
  };
  Checksum checksum;
  for (const auto& data : {train, test}) {
    checksum.add(data->rows);
    checksum.add(data->columns);
    checksum.add(data->images);
    checksum.add(data->labels);
  }
  // As the paper: the first images train, the last of the same file validate.
  return {images(train, 0, config.train_size),
          images(train, train->size() - config.valid_size, config.valid_size),
          images(test, 0, test->size()), tasks::Sampling::kShuffledPasses, checksum.text()};
}

bool by_position(const Config& config) { return config.model == "soft-attention"; }

tasks::CaptionData generated_data(const Config& config) {
  const int64_t train = config.train_size == 0 ? 1000 : config.train_size;
  const int64_t valid = config.valid_size == 0 ? 200 : config.valid_size;
  return tasks::generated_captions(train, valid, valid, by_position(config),
                                   stream_seed(config.seed, Stream::kTrainData));
}

}  // namespace

tasks::Task make_task(const Config& config) {
  if (config.task == "mnist") return make_mnist(config);
  const auto set = [&](int64_t size, Stream stream) {
    return copying_set(config, config.delay, size, stream_seed(config.seed, stream));
  };
  return {set(config.train_size, Stream::kTrainData), set(config.valid_size, Stream::kValidData),
          nullptr, tasks::Sampling::kWithReplacement};
}

TaskData make_data(const Config& config) {
  if (config.task != "caption") return make_task(config);
  if (config.data == "generated") {
    return std::make_shared<const tasks::CaptionData>(generated_data(config));
  }
  tasks::CaptionDataOptions options;
  options.folder = config.data;
  options.spatial = by_position(config);
  options.most_words = config.most_words;
  options.more_than = config.rare_words;
  options.train_images = config.train_size;
  options.valid_images = config.valid_size;
  return std::make_shared<const tasks::CaptionData>(tasks::read_caption_data(options));
}

tasks::CaptionSplit make_caption_split(const Config& config, tasks::Split split, int64_t most) {
  const int64_t of_run = split == tasks::Split::kTrain   ? config.train_size
                         : split == tasks::Split::kValid ? config.valid_size
                                                         : 0;
  if (of_run > 0) most = most == 0 ? of_run : std::min(most, of_run);
  if (config.data != "generated") {
    return tasks::read_caption_split(config.data, by_position(config), split, most);
  }
  tasks::CaptionData data = generated_data(config);
  auto& images = split == tasks::Split::kTrain   ? data.train
                 : split == tasks::Split::kValid ? data.valid
                                                 : data.test;
  if (most > 0 && most < static_cast<int64_t>(images.size())) images.resize(most);
  std::vector<std::filesystem::path> no_files(images.size());
  return {data.features, std::move(images), std::move(no_files)};
}

std::shared_ptr<const tasks::SequenceSet> transfer_set(const Config& config, int64_t delay,
                                                       int64_t size) {
  const uint64_t seed = stream_seed(config.seed, Stream::kTransferData);
  return copying_set(config, delay, size, random_bits(seed, delay));
}

}  // namespace hdetach::train
