#include "train/caption_run.h"

#include <fmt/core.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/files.h"
#include "formats/mapped_file.h"
#include "formats/safetensors.h"
#include "train/caption_trainer.h"
#include "train/run_folder.h"

namespace hdetach::train {
namespace {

namespace fs = std::filesystem;

// What the weights' shapes tell of the data they were trained on; 0 where an array is missing,
// which load_best() says.
struct TrainedOn {
  int64_t words = 0, channels = 0;
};

TrainedOn look_at_weights(const fs::path& path, const std::string& model) {
  const files::MappedFile file(path);
  const safetensors::Contents contents = safetensors::read_header(file.bytes(), path.string());
  const auto size = [&](const char* name, size_t dimension) -> int64_t {
    const safetensors::Array* array = contents.find(name);
    return array == nullptr || array->shape.size() != 2 ? 0 : array->shape[dimension];
  };
  return {size("embedding.weight", 0),
          size(model == "show-tell" ? "image.weight" : "attention.key.weight", 1)};
}

}  // namespace

tasks::Vocabulary read_words(const fs::path& run) {
  const fs::path path = run / "words.txt";
  if (!fs::exists(path)) {
    throw std::runtime_error(
        fmt::format("{} has no words.txt, the words that its model knows; copy it from the folder "
                    "where the run was trained",
                    run.string()));
  }
  std::istringstream lines(files::read_regular(path));
  std::vector<std::string> words;
  for (std::string word; std::getline(lines, word);) words.push_back(std::move(word));
  try {
    return tasks::Vocabulary(std::move(words));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", path.string(), error.what()));
  }
}

std::shared_ptr<Captioner> load_captioner(const Config& config, const fs::path& run,
                                          const tasks::Vocabulary& words,
                                          const tasks::ImageFeatures& features) {
  const TrainedOn trained = look_at_weights(run / "best.safetensors", config.model);
  if (trained.words > 0 && trained.words != words.size()) {
    throw std::runtime_error(
        fmt::format("{} has {} words, but the model in best.safetensors knows {}; both must be of "
                    "the same run",
                    (run / "words.txt").string(), words.size(), trained.words));
  }
  if (trained.channels > 0 && trained.channels != features.channels()) {
    throw std::runtime_error(
        fmt::format("{} was trained on features of {} channels, but these have {}; use features of "
                    "the network that made those",
                    run.string(), trained.channels, features.channels()));
  }
  std::shared_ptr<Captioner> model = make_caption_model(config, words.size(), features);
  load_best(model->parameters(), run);
  return model;
}

}  // namespace hdetach::train
