#include "train/make_task.h"

#include <fmt/core.h>

#include <numeric>
#include <utility>

#include "tasks/copying.h"
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
  // As the paper: the first images train, the last of the same file validate.
  return {images(train, 0, config.train_size),
          images(train, train->size() - config.valid_size, config.valid_size),
          images(test, 0, test->size()), tasks::Sampling::kShuffledPasses};
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

std::shared_ptr<const tasks::SequenceSet> transfer_set(const Config& config, int64_t delay,
                                                       int64_t size) {
  const uint64_t seed = stream_seed(config.seed, Stream::kTransferData);
  return copying_set(config, delay, size, random_bits(seed, delay));
}

}  // namespace hdetach::train
