#include "tasks/generated_captions.h"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "op/random_bits.h"
#include "tasks/sequence_set.h"

namespace hdetach::tasks {
namespace {

constexpr int64_t kChannels = 64, kPositions = 9;
constexpr int64_t kCaptions = 5;    // of an image
constexpr int64_t kMostWords = 16;  // more than any caption has
constexpr double kNoise = 0.3;      // standard deviation, where the signal's is about 1

struct Thing {
  std::string_view one, many;
};
constexpr std::array<Thing, 8> kThings = {{{"dog", "dogs"},
                                           {"cat", "cats"},
                                           {"horse", "horses"},
                                           {"bird", "birds"},
                                           {"car", "cars"},
                                           {"boat", "boats"},
                                           {"chair", "chairs"},
                                           {"kite", "kites"}}};
constexpr std::array<std::string_view, 6> kColours = {"red",   "blue",  "green",
                                                      "white", "black", "yellow"};
constexpr std::array<std::string_view, 6> kPlaces = {
    "on the beach", "in a field", "near a house", "under the trees", "by a lake", "on a street"};
constexpr std::array<std::string_view, 3> kNumbers = {"one", "two", "three"};

// N stands for the number, C for the colour, T for the thing or things, P for the place, V for is
// or are.
constexpr std::array<std::string_view, 7> kTemplates = {
    "N C T P",        "P there V N C T",     "a photo of N C T P",
    "N T that V C P", "N C T can be seen P", "P we see N C T",
    "there V N C T P"};

struct Scene {
  uint64_t thing, colour, place, number;
};

std::string caption(const Scene& scene, std::string_view pattern) {
  const bool many = scene.number > 0;
  std::string text;
  for (const char letter : pattern) {
    switch (letter) {
      case 'N':
        text += kNumbers[scene.number];
        break;
      case 'C':
        text += kColours[scene.colour];
        break;
      case 'T':
        text += many ? kThings[scene.thing].many : kThings[scene.thing].one;
        break;
      case 'P':
        text += kPlaces[scene.place];
        break;
      case 'V':
        text += many ? "are" : "is";
        break;
      default:
        text += letter;
    }
  }
  return text;
}

class Table : public ImageFeatures {
 public:
  Table(int64_t images, int64_t positions)
      : images_(images), positions_(positions), values_(images * positions * kChannels) {}

  int64_t images() const override { return images_; }
  int64_t positions() const override { return positions_; }
  int64_t channels() const override { return kChannels; }
  void read(int64_t image, float* to) const override {
    const int64_t size = positions_ * kChannels;
    std::copy_n(values_.data() + image * size, size, to);
  }
  float* at(int64_t image, int64_t position) {
    return values_.data() + (image * positions_ + position) * kChannels;
  }

 private:
  int64_t images_, positions_;
  std::vector<float> values_;  // [images, positions, channels]
};

// Three uniform draws add up to what looks normal, and to the same on any machine.
double noise(uint64_t stream, uint64_t n) {
  return 2 * (random_uniform(stream, 3 * n) + random_uniform(stream, 3 * n + 1) +
              random_uniform(stream, 3 * n + 2) - 1.5);
}

// Adds the pattern that stands for value number `value` of attribute number `attribute`.
void add_pattern(uint64_t attribute, uint64_t value, float* to) {
  const uint64_t stream = random_bits(attribute, value);
  for (int64_t i = 0; i < kChannels; ++i) to[i] += static_cast<float>(0.5 * noise(stream, i));
}

void draw_features(const Scene& scene, uint64_t stream, int64_t row, Table& table) {
  const int64_t positions = table.positions();
  const auto seat = static_cast<int64_t>(random_below(stream, ~uint64_t{0}, positions));
  for (int64_t position = 0; position < positions; ++position) {
    float* const to = table.at(row, position);
    if (position == seat) {
      add_pattern(0, scene.thing, to);
      add_pattern(1, scene.colour, to);
      add_pattern(2, scene.number, to);
    }
    if (position != seat || positions == 1) add_pattern(3, scene.place, to);
    for (int64_t i = 0; i < kChannels; ++i) {
      to[i] += static_cast<float>(kNoise * noise(stream, position * kChannels + i));
    }
  }
}

struct Drawn {
  Scene scene;
  std::vector<std::string> captions;
};

Drawn draw(uint64_t stream) {
  Drawn drawn;
  drawn.scene = {random_below(stream, 0, kThings.size()), random_below(stream, 1, kColours.size()),
                 random_below(stream, 2, kPlaces.size()), random_below(stream, 3, kNumbers.size())};
  const auto order = shuffled(kTemplates.size(), random_bits(stream, 4));
  for (int64_t i = 0; i < kCaptions; ++i) {
    drawn.captions.push_back(caption(drawn.scene, kTemplates[order[i]]));
  }
  return drawn;
}

}  // namespace

CaptionData generated_captions(int64_t train, int64_t valid, int64_t test, bool spatial,
                               uint64_t seed) {
  if (train < 1 || valid < 1 || test < 0) {
    throw std::invalid_argument("[generated_captions] train and valid must be above 0");
  }
  const auto table = std::make_shared<Table>(train + valid + test, spatial ? kPositions : 1);
  const std::array<int64_t, 3> sizes = {train, valid, test};
  std::array<std::vector<CaptionedImage>, 3> splits;
  std::vector<std::string> words;  // of the training captions
  int64_t row = 0;
  for (size_t split = 0; split < splits.size(); ++split) {
    for (int64_t i = 0; i < sizes[split]; ++i, ++row) {
      const uint64_t stream = random_bits(random_bits(seed, split), i);
      Drawn drawn = draw(stream);
      draw_features(drawn.scene, mix_bits(stream), row, *table);
      if (split == 0) words.insert(words.end(), drawn.captions.begin(), drawn.captions.end());
      splits[split].push_back({row, row, {}, std::move(drawn.captions)});
    }
  }
  CaptionData data{Vocabulary(words, 0), table, {}, {}, {}};
  for (auto& split : splits) {
    for (CaptionedImage& image : split) {
      for (const std::string& text : image.references) {
        image.captions.push_back(data.vocabulary.encode(text, kMostWords));
      }
    }
  }
  data.train = std::move(splits[0]);
  data.valid = std::move(splits[1]);
  data.test = std::move(splits[2]);
  return data;
}

}  // namespace hdetach::tasks
