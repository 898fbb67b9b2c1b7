#include "tasks/feature_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "formats/mapped_file.h"
#include "tasks/tensor_features.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr float kLargestHalf = 65504;
constexpr int64_t kHalfSize = 2;

// The nearest half, of two as near the even one, to a number that is no larger than the largest.
uint16_t half_of(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7FFFFFFF;
  constexpr uint32_t kSmallestNormal = 113u << 23;  // 2^-14
  if (bits < kSmallestNormal) {
    // The last place of a float from 0.5 to 1 is 2^-24, as that of such a half: adding rounds.
    float sum;
    std::memcpy(&sum, &bits, sizeof(sum));
    sum += 0.5f;
    std::memcpy(&bits, &sum, sizeof(bits));
    return sign | static_cast<uint16_t>(bits - (126u << 23));
  }
  bits += 0xFFF + (bits >> 13 & 1);
  return sign | static_cast<uint16_t>((bits - (112u << 23)) >> 13);  // the bias is 15, not 127
}

// What a file starts with, the header as JSON; null where it is none.
json header_of(std::string_view start) {
  uint64_t size = 0;
  if (start.size() < sizeof(size)) return nullptr;
  std::memcpy(&size, start.data(), sizeof(size));
  start.remove_prefix(sizeof(size));
  const std::string_view text = start.substr(0, std::min<uint64_t>(size, start.size()));
  const json header = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  return header.is_object() ? header : json(nullptr);
}

// In words, how the start of a file differs from what it should be.
std::string difference(std::string_view found, std::string_view expected) {
  const json there = header_of(found), now = header_of(expected);
  if (there.is_null()) return "it was not made by hdetach features";
  const auto at = [](const json& header, const json::json_pointer& place) {
    return header.contains(place) ? header.at(place).dump() : "missing";
  };
  const json::json_pointer settings("/__metadata__"), shape("/features/shape");
  for (const auto& [key, value] : now.at(settings).items()) {
    const std::string old_value = at(there, settings / key);
    if (old_value != value.dump()) {
      return fmt::format("{} is {} there and {} now", key, old_value, value.dump());
    }
  }
  if (at(there, shape) != at(now, shape)) {
    return fmt::format("its features are {} and would be {} now", at(there, shape), at(now, shape));
  }
  return "its list of images is another";
}

}  // namespace

FeatureFile::FeatureFile(const fs::path& path, std::vector<int64_t> ids, int64_t positions,
                         int64_t channels, const safetensors::Metadata& settings)
    : path_(path), ids_(std::move(ids)), row_(positions * channels), skipped_(ids_.size()) {
  std::vector<int64_t> shape = {images(), positions, channels};
  if (positions == 1) shape.erase(shape.begin() + 1);
  std::string start =
      safetensors::serialize_header({{kFeaturesArray, "F16", shape, nullptr},
                                     {kIdsArray, "I64", {images()}, nullptr}},  // the larger first
                                    settings);
  start.append(reinterpret_cast<const char*>(ids_.data()), ids_.size() * sizeof(int64_t));
  start_ = static_cast<int64_t>(start.size());
  const auto check = [&start](const fs::path& file, std::string_view found) {
    if (found == start) return;
    throw std::runtime_error(
        fmt::format("{} is there already and does not match: {}; move it away, or name another "
                    "folder by --out",
                    file.string(), difference(found, start)));
  };
  std::error_code ignored;  // what cannot be examined cannot be written, and that is said below
  if (fs::exists(path, ignored)) {
    const files::MappedFile file(path);
    check(path, with_every_id(std::string(file.bytes().substr(0, start.size()))));
    const auto size = static_cast<size_t>(start_ + images() * row_ * kHalfSize);
    if (file.size() != size) {
      throw std::runtime_error(fmt::format("{} has {} bytes where it must have {}; remove it",
                                           path.string(), file.size(), size));
    }
    done_ = images();
    return;
  }
  part_.emplace(path);
  const std::string found = with_every_id(part_->start(start.size()));
  if (start.compare(0, found.size(), found) ==
      0) {  // all of it, or new, or killed while writing it
    part_->append(start.substr(found.size()));
  } else {
    check(part_->part(), found);
  }
  done_ = std::min(images(), (part_->size() - start_) / (row_ * kHalfSize));
  cut(done_);  // of the row after those, where there is a part of it
}

std::string FeatureFile::with_every_id(std::string start) {
  for (size_t row = 0; row < ids_.size(); ++row) {
    const size_t place = static_cast<size_t>(start_) - (ids_.size() - row) * sizeof(int64_t);
    int64_t id;
    if (place + sizeof(id) > start.size()) break;
    std::memcpy(&id, start.data() + place, sizeof(id));
    if (id >= 0) continue;
    skipped_[row] = true;
    id = -1 - id;
    std::memcpy(start.data() + place, &id, sizeof(id));
  }
  return start;
}

void FeatureFile::mark(int64_t row, bool is_skipped) {
  const auto index = static_cast<size_t>(row);
  if (skipped_[index] == is_skipped) return;
  const int64_t id = is_skipped ? -1 - ids_[index] : ids_[index];
  const int64_t place = start_ - (images() - row) * static_cast<int64_t>(sizeof(id));
  part_->replace(place, {reinterpret_cast<const char*>(&id), sizeof(id)});
  skipped_[index] = is_skipped;
}

void FeatureFile::cut(int64_t images) {
  part_->cut(start_ + images * row_ * kHalfSize);
  done_ = images;
}

void FeatureFile::append(const std::vector<float>& rows) {
  std::string bytes(rows.size() * kHalfSize, '\0');
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!(std::abs(rows[i]) <= kLargestHalf)) {
      const int64_t image = done_ + static_cast<int64_t>(i) / row_;
      throw std::runtime_error(
          fmt::format("{}: a feature of image {} is {}, which F16 cannot hold; are the weights "
                      "damaged?",
                      path_.string(), ids_[static_cast<size_t>(image)], rows[i]));
    }
    const uint16_t half = half_of(rows[i]);
    std::memcpy(bytes.data() + i * kHalfSize, &half, sizeof(half));
  }
  part_->append(bytes);
  done_ += static_cast<int64_t>(rows.size()) / row_;
}

void FeatureFile::complete() {
  part_->complete();
  part_.reset();
}

}  // namespace hdetach::tasks
