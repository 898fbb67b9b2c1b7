#include "tasks/tensor_features.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "formats/mapped_file.h"
#include "formats/safetensors.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kInfinity = 0x7F800000;  // the bits of a float; those of NaNs are larger

enum class Number { kFloat, kHalf, kBrainFloat };

// The bits of the float that has the value of an IEEE half. Without branches, for the vectoriser.
int32_t half_bits(uint16_t half) {
  const int32_t exponent = half & 0x7C00, shifted = (half & 0x7FFF) << 13;
  const float small = static_cast<float>(half & 0x3FF) * 0x1p-24f;
  int32_t subnormal;
  std::memcpy(&subnormal, &small, sizeof(subnormal));
  const int32_t normal = shifted + (112 << 23);                   // the bias is 127, not 15
  const int32_t is_small = -static_cast<int32_t>(exponent == 0);  // all bits or none
  const int32_t is_large = -static_cast<int32_t>(exponent == 0x7C00);
  const auto sign = static_cast<int32_t>(uint32_t{half} >> 15 << 31);
  return (subnormal & is_small) | (normal & ~is_small) | (kInfinity & is_large) | sign;
}

int32_t brain_float_bits(uint16_t number) { return static_cast<int32_t>(uint32_t{number} << 16); }

int32_t same_bits(int32_t number) { return number; }

// `count` numbers as floats; false where one is not finite. `from` may be unaligned.
template <class Stored, int32_t bits_of(Stored)>
bool decode_as(const char* from, int64_t count, float* to) {
  int32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, from + sizeof(stored) * i, sizeof(stored));
    const int32_t bits = bits_of(stored);
    largest = std::max(largest, bits & 0x7FFFFFFF);
    std::memcpy(to + i, &bits, sizeof(bits));
  }
  return largest < kInfinity;
}

bool decode(Number number, const char* from, int64_t count, float* to) {
  switch (number) {
    case Number::kFloat:
      return decode_as<int32_t, same_bits>(from, count, to);
    case Number::kHalf:
      return decode_as<uint16_t, half_bits>(from, count, to);
    default:
      return decode_as<uint16_t, brain_float_bits>(from, count, to);
  }
}

struct Part {
  std::string name;  // for messages
  files::MappedFile file;
  Number number;
  int64_t images, positions, channels;
  const char* features;  // into the file
  const char* ids;

  int64_t number_size() const { return number == Number::kFloat ? 4 : 2; }
};

Part open_part(const fs::path& path) {
  files::MappedFile file(path);
  const std::string name = path.string();
  const safetensors::Contents contents = safetensors::read_header(file.bytes(), name);
  const auto fail = [&name](const std::string& what) {
    throw std::runtime_error(name + ": " + what);
  };
  const safetensors::Array* const features = contents.find(kFeaturesArray);
  const safetensors::Array* const ids = contents.find(kIdsArray);
  if (features == nullptr || ids == nullptr) {
    fail(fmt::format("there is no array \"{}\"", features == nullptr ? kFeaturesArray : kIdsArray));
  }
  const std::vector<int64_t>& shape = features->shape;
  const std::string& dtype = features->dtype;
  if (dtype != "F32" && dtype != "F16" && dtype != "BF16") {
    fail(fmt::format("features are {}; F32, F16 and BF16 can be read", dtype));
  }
  if (shape.size() < 2 || shape.size() > 3 ||
      std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; })) {
    fail("features must be [images, channels] or [images, positions, channels], none of them 0");
  }
  if (ids->dtype != "I64" || ids->shape != std::vector<int64_t>{shape[0]}) {
    fail(fmt::format("ids must be {} numbers I64, one for each image of features", shape[0]));
  }
  const Number number = dtype == "F32"   ? Number::kFloat
                        : dtype == "F16" ? Number::kHalf
                                         : Number::kBrainFloat;
  return {name,         std::move(file), number,   shape[0], shape.size() == 3 ? shape[1] : 1,
          shape.back(), features->data,  ids->data};
}

class Features : public ImageFeatures {
 public:
  Features(std::vector<Part> parts, bool spatial)
      : parts_(std::move(parts)),
        positions_(parts_[0].positions),
        channels_(parts_[0].channels),
        spatial_(spatial) {
    for (const Part& part : parts_) {
      if (part.positions != positions_ || part.channels != channels_) {
        throw std::runtime_error(fmt::format("{}: an image has {} x {} features, but {} x {} in {}",
                                             part.name, part.positions, part.channels, positions_,
                                             channels_, parts_[0].name));
      }
      ends_.push_back(images() + part.images);
    }
    if (spatial && positions_ == 1) {
      throw std::runtime_error(parts_[0].name +
                               ": features have no positions, which this model looks at");
    }
  }

  int64_t images() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t positions() const override { return spatial_ ? positions_ : 1; }
  int64_t channels() const override { return channels_; }

  void read(int64_t image, float* to) const override {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), image);
    const Part& part = parts_[static_cast<size_t>(end - ends_.begin())];
    const int64_t row = image - (*end - part.images);
    const int64_t row_bytes = positions_ * channels_ * part.number_size();
    const char* const from = part.features + row * row_bytes;
    const bool finite = spatial_ || positions_ == 1
                            ? decode(part.number, from, positions_ * channels_, to)
                            : read_mean(part, from, to);
    if (!finite) {
      throw std::runtime_error(
          fmt::format("{}: features of row {} are not finite", part.name, row));
    }
  }

 private:
  bool read_mean(const Part& part, const char* from, float* to) const {
    std::vector<float> at(channels_);
    std::fill(to, to + channels_, 0.0f);
    bool finite = true;
    for (int64_t position = 0; position < positions_; ++position) {
      finite &= decode(part.number, from, channels_, at.data());
      for (int64_t i = 0; i < channels_; ++i) to[i] += at[i];
      from += channels_ * part.number_size();
    }
    for (int64_t i = 0; i < channels_; ++i) to[i] /= static_cast<float>(positions_);
    return finite;
  }

  std::vector<Part> parts_;
  int64_t positions_, channels_;  // as the files have them
  bool spatial_;
  std::vector<int64_t> ends_;  // of each part, in images of all
};

}  // namespace

TensorFeatures open_tensor_features(const std::vector<fs::path>& files, bool spatial) {
  if (files.empty()) throw std::invalid_argument("[open_tensor_features] there are no files");
  TensorFeatures result;
  std::vector<Part> parts;
  int64_t row = 0;
  for (const fs::path& path : files) {
    parts.push_back(open_part(path));
    const Part& part = parts.back();
    for (int64_t i = 0; i < part.images; ++i, ++row) {
      int64_t id;
      std::memcpy(&id, part.ids + i * sizeof(id), sizeof(id));
      if (id < 0) continue;  // skipped, see feature_file.h
      if (!result.rows.emplace(id, row).second) {
        throw std::runtime_error(fmt::format("{}: id {} of row {} stands twice", part.name, id, i));
      }
    }
  }
  result.features = std::make_shared<Features>(std::move(parts), spatial);
  return result;
}

}  // namespace hdetach::tasks
