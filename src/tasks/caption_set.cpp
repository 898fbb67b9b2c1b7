#include "tasks/caption_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "formats/checksum.h"
#include "op/random_bits.h"
#include "tasks/caption_files.h"
#include "tasks/ptb_tokenizer.h"

namespace hdetach::tasks {
namespace {

// Images of a split while the vocabulary is not known yet.
struct Gathered {
  std::vector<CaptionedImage> images;
  std::vector<std::string> words;  // of the captions of all images, one after the other
  int64_t most = 0;                // images, 0: all

  bool full() const { return most > 0 && static_cast<int64_t>(images.size()) >= most; }

  void add(int64_t row, ListedImage listed) {
    CaptionedImage image;
    image.id = listed.id;
    image.row = row;
    for (size_t i = 0; i < listed.captions.size(); ++i) {
      image.references.push_back(ptb_tokenize(listed.captions[i]));
      words.push_back(listed.words[i].empty() ? image.references.back()
                                              : std::move(listed.words[i]));
    }
    images.push_back(std::move(image));
  }

  void encode(const Vocabulary& vocabulary, int64_t most_words, const std::string& folder) {
    auto next = words.begin();
    for (CaptionedImage& image : images) {
      for (size_t i = 0; i < image.references.size(); ++i, ++next) {
        // A caption of signs alone has no word to learn.
        if (!next->empty()) image.captions.push_back(vocabulary.encode(*next, most_words));
      }
      if (image.captions.empty()) {
        throw std::runtime_error(
            fmt::format("{}: no caption of image {} has a word", folder, image.id));
      }
    }
    words = {};
  }
};

using Rows = std::vector<const std::vector<int32_t>*>;

const std::vector<std::vector<int32_t>>& captions_of(const CaptionedImage& image) {
  if (image.captions.empty()) {
    throw std::invalid_argument(fmt::format("[CaptionBatch] image {} has no caption", image.id));
  }
  return image.captions;
}

void put(const Rows& rows, CaptionBatch& batch) {
  for (const auto* row : rows) batch.lengths.push_back(static_cast<int64_t>(row->size()) + 1);
  batch.steps = *std::max_element(batch.lengths.begin(), batch.lengths.end());
  const size_t width = rows.size();
  batch.inputs.assign(batch.steps * width, kPadding);
  batch.targets.assign(batch.steps * width, kPadding);
  for (size_t r = 0; r < width; ++r) {
    const std::vector<int32_t>& words = *rows[r];
    batch.inputs[r] = kStart;
    for (size_t t = 0; t < words.size(); ++t) {
      batch.inputs[(t + 1) * width + r] = batch.targets[t * width + r] = words[t];
    }
    batch.targets[words.size() * width + r] = kEnd;
  }
}

// All captions, and of each split's features up to 64 MiB: those of all may be hundreds of
// gigabytes. Where there are more, they are those of images evenly apart.
std::string checksum_of(const CaptionData& data) {
  constexpr size_t kFloatsRead = size_t{16} << 20;
  Checksum checksum;
  std::vector<float> values(data.features->positions() * data.features->channels());
  const size_t images_read = kFloatsRead / values.size() + 1;
  for (const auto* split : {&data.train, &data.valid, &data.test}) {
    checksum.add(static_cast<int64_t>(split->size()));
    const size_t stride = (split->size() + images_read - 1) / images_read;
    for (size_t i = 0; i < split->size(); ++i) {
      const CaptionedImage& image = (*split)[i];
      checksum.add(image.id);
      for (const auto& caption : image.captions) checksum.add(caption);
      for (const std::string& reference : image.references) checksum.add(reference);
      if (i % stride != 0) continue;
      data.features->read(image.row, values.data());
      checksum.add(values);
    }
  }
  return checksum.text();
}

}  // namespace

CaptionData read_caption_data(const CaptionDataOptions& options) {
  if (options.most_words < 1 || options.more_than < 0 || options.train_images < 0 ||
      options.valid_images < 0) {
    throw std::invalid_argument(
        "[read_caption_data] most_words must be above 0, the other numbers not below");
  }
  const FeatureFolder features(options.folder, options.spatial);
  Gathered train, valid, test;
  train.most = options.train_images;
  valid.most = options.valid_images;
  read_captions(options.folder, [&](ListedImage image) {
    Gathered& split = image.split == Split::kTrain   ? train
                      : image.split == Split::kValid ? valid
                                                     : test;
    const std::optional<int64_t> row = features.row(image);
    if (row && !split.full()) split.add(*row, std::move(image));
  });
  for (const Gathered* split : {&train, &valid}) {
    if (split->images.empty()) {
      throw std::runtime_error(fmt::format("{}: no image of the {} split has features",
                                           options.folder,
                                           split == &train ? "training" : "validation"));
    }
  }
  // Counted before captions are cut, as the released code of the paper does.
  CaptionData data{Vocabulary(train.words, options.more_than), features.features(), {}, {}, {}};
  for (Gathered* split : {&train, &valid, &test}) {
    split->encode(data.vocabulary, options.most_words, options.folder);
  }
  data.train = std::move(train.images);
  data.valid = std::move(valid.images);
  data.test = std::move(test.images);
  data.checksum = checksum_of(data);
  return data;
}

CaptionSplit read_caption_split(const std::string& folder, bool spatial, Split split,
                                int64_t most) {
  const FeatureFolder features(folder, spatial);
  Gathered gathered;
  gathered.most = most;
  std::vector<std::filesystem::path> files;
  read_captions(folder, [&](ListedImage image) {
    if (image.split != split || gathered.full()) return;
    const std::optional<int64_t> row = features.row(image);
    if (!row) return;
    files.push_back(image.file);
    gathered.add(*row, std::move(image));
  });
  return {features.features(), std::move(gathered.images), std::move(files)};
}

CaptionSampler::CaptionSampler(const std::vector<CaptionedImage>& set, int64_t images,
                               int64_t captions, uint64_t seed)
    : set_(set),
      images_(images),
      captions_(captions),
      seed_(seed),
      sampler_(Sampling::kShuffledPasses, static_cast<int64_t>(set.size()), seed) {
  if (set.empty() || images < 1 || captions < 1) {
    throw std::invalid_argument("[CaptionSampler] images, captions and the set must not be empty");
  }
}

CaptionBatch CaptionSampler::minibatch(int64_t update) {
  if (update < 0) throw std::invalid_argument("[CaptionSampler] update must not be below 0");
  const uint64_t size = set_.size(), first = static_cast<uint64_t>(update) * images_;
  CaptionBatch batch;
  batch.images.resize(images_);
  sampler_.minibatch(update, batch.images);
  Rows rows;
  for (int64_t i = 0; i < images_; ++i) {
    const int64_t place = batch.images[i];
    const auto& all = captions_of(set_[place]);
    const int64_t count = static_cast<int64_t>(all.size());
    // An image's captions have an order of their own, and each pass goes on where the last ended.
    const auto order = shuffled(count, random_bits(mix_bits(seed_), place));
    const uint64_t pass = (first + i) / size;
    for (int64_t k = 0; k < captions_; ++k) {
      rows.push_back(&all[order[(pass * captions_ + k) % count]]);
    }
  }
  put(rows, batch);
  return batch;
}

CaptionBatch first_captions(const std::vector<CaptionedImage>& set,
                            const std::vector<int64_t>& images, int64_t captions) {
  CaptionBatch batch;
  batch.images = images;
  Rows rows;
  for (const int64_t place : images) {
    const auto& all = captions_of(set[place]);
    for (int64_t k = 0; k < captions; ++k) rows.push_back(&all[k % all.size()]);
  }
  put(rows, batch);
  return batch;
}

}  // namespace hdetach::tasks
