#include "tasks/coded_features.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/files.h"
#include "formats/json_object.h"
#include "formats/mapped_file.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;

// The rules of decoding that are known here, as FORMAT.json spells them.
constexpr char kPoolDecode[] = "x = 16*(c/255)^2";
constexpr char kSpatialDecode[] =
    "channel = u>>5; q = u&31; value = q==0 ? 0 : 0.25*2^(q/4); entries sorted by decreasing "
    "value; position = row*7+col";
constexpr int64_t kNameable = 2048;          // channels that u >> 5 can name
constexpr int64_t kMost = int64_t{1} << 31;  // images, channels, positions: products stay in range

int64_t size_in(const JsonObject& object, const char* key) {
  const int64_t size = object.whole(key);
  if (size < 1 || size >= kMost) object.fail(fmt::format("{} is {}, out of range", key, size));
  return size;
}

JsonObject coding_in(const JsonObject& format, const char* key, const fs::path& file,
                     const char* dtype, const char* decode) {
  JsonObject coding(format.object(key), file.string() + ": " + key);
  const auto expect = [&coding](const char* field, const char* known) {
    const std::string found = coding.text(field);
    if (found != known) {
      coding.fail(fmt::format("{} is \"{}\", but only \"{}\" is known", field, found, known));
    }
  };
  expect("dtype", dtype);
  expect("decode", decode);
  return coding;
}

// Files that follow one another, as one array of rows.
class Stretches {
 public:
  Stretches(const fs::path& folder, const std::string& prefix, const JsonObject& format,
            int64_t row_bytes)
      : row_bytes_(row_bytes) {
    for (const nlohmann::json& row : format.list("rows")) {
      if (!row.is_array() || row.size() != 3 || !row[0].is_string() ||
          !row[1].is_number_integer() || !row[2].is_number_integer()) {
        format.fail("rows has an entry that is not a name, a begin and an end");
      }
      add(folder, prefix, format, row[0].get<std::string>(), row[1].get<int64_t>(),
          row[2].get<int64_t>());
    }
    const int64_t promised = size_in(format, "N");
    if (images() != promised) {
      format.fail(fmt::format("N is {}, but the rows are {}", promised, images()));
    }
  }

  int64_t images() const { return ends_.empty() ? 0 : ends_.back(); }

  const char* row(int64_t image) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), image);
    const auto file = static_cast<size_t>(end - ends_.begin());
    const int64_t begin = file == 0 ? 0 : ends_[file - 1];
    return files_[file].data() + (image - begin) * row_bytes_;
  }

 private:
  void add(const fs::path& folder, const std::string& prefix, const JsonObject& format,
           const std::string& name, int64_t begin, int64_t end) {
    if (name.empty() || name.find('/') != std::string::npos) {
      format.fail(fmt::format("\"{}\" is no name of a stretch", name));
    }
    if (begin != images() || end <= begin || end >= kMost) {
      format.fail(fmt::format("rows {} to {} of {} do not follow {}", begin, end, name, images()));
    }
    const fs::path path = folder / (prefix + "." + name + ".bin");
    files_.emplace_back(path);
    const int64_t expected = (end - begin) * row_bytes_;
    if (files_.back().size() != static_cast<size_t>(expected)) {
      throw std::runtime_error(fmt::format("{}: {} bytes, but {} images have {}", path.string(),
                                           files_.back().size(), end - begin, expected));
    }
    ends_.push_back(end);
  }

  int64_t row_bytes_;
  std::vector<files::MappedFile> files_;
  std::vector<int64_t> ends_;  // of each file, in rows of all
};

class PooledFeatures : public ImageFeatures {
 public:
  PooledFeatures(const fs::path& folder, const JsonObject& format, int64_t channels)
      : channels_(channels), rows_(folder, "resnet50_pool_u8", format, channels) {
    for (size_t c = 0; c < values_.size(); ++c) {
      const double root = static_cast<double>(c) / 255;
      values_[c] = static_cast<float>(16 * root * root);
    }
  }

  int64_t images() const override { return rows_.images(); }
  int64_t positions() const override { return 1; }
  int64_t channels() const override { return channels_; }
  void read(int64_t image, float* to) const override {
    const char* const codes = rows_.row(image);
    for (int64_t i = 0; i < channels_; ++i) to[i] = values_[static_cast<uint8_t>(codes[i])];
  }

 private:
  int64_t channels_;
  Stretches rows_;
  std::array<float, 256> values_;  // of each byte
};

class SpatialFeatures : public ImageFeatures {
 public:
  SpatialFeatures(const fs::path& folder, const JsonObject& format, int64_t positions,
                  int64_t largest)
      : positions_(positions),
        largest_(largest),
        rows_(folder, "resnet50_7x7_top32_u16", format, positions * largest * 2),
        fill_(read_fill(folder / "resnet50_7x7_top32_fill_f32.bin")) {
    values_[0] = 0;
    for (size_t q = 1; q < values_.size(); ++q) {
      values_[q] = static_cast<float>(0.25 * std::exp2(static_cast<double>(q) / 4));
    }
  }

  int64_t images() const override { return rows_.images(); }
  int64_t positions() const override { return positions_; }
  int64_t channels() const override { return kNameable; }
  void read(int64_t image, float* to) const override {
    const char* codes = rows_.row(image);
    for (int64_t position = 0; position < positions_; ++position, to += kNameable) {
      std::copy(fill_.begin(), fill_.end(), to);
      for (int64_t i = 0; i < largest_; ++i, codes += 2) {
        uint16_t code;
        std::memcpy(&code, codes, sizeof(code));
        to[code >> 5] = values_[code & 31];
      }
    }
  }

 private:
  static std::vector<float> read_fill(const fs::path& path) {
    const std::string bytes = files::read(path);
    std::vector<float> fill(kNameable);
    if (bytes.size() != fill.size() * sizeof(float)) {
      throw std::runtime_error(fmt::format("{}: {} bytes, but {} channels have {}", path.string(),
                                           bytes.size(), kNameable, fill.size() * sizeof(float)));
    }
    std::memcpy(fill.data(), bytes.data(), bytes.size());
    if (!std::all_of(fill.begin(), fill.end(), [](float x) { return std::isfinite(x); })) {
      throw std::runtime_error(path.string() + ": a value is not finite");
    }
    return fill;
  }

  int64_t positions_, largest_;
  Stretches rows_;
  std::vector<float> fill_;
  std::array<float, 32> values_;  // of the lower five bits
};

}  // namespace

std::shared_ptr<const ImageFeatures> open_coded_features(const fs::path& folder, bool spatial) {
  const fs::path file = folder / "FORMAT.json";
  const JsonObject format(files::read(file), file.string());
  if (!spatial) {
    const JsonObject pool = coding_in(format, "pool", file, "uint8", kPoolDecode);
    return std::make_shared<PooledFeatures>(folder, format, size_in(pool, "dim"));
  }
  const JsonObject coding =
      coding_in(format, "spatial", file, "uint16 little-endian", kSpatialDecode);
  const int64_t positions = size_in(coding, "positions"), largest = size_in(coding, "k");
  if (positions > kNameable || largest > kNameable) {
    coding.fail(fmt::format("{} positions of {} channels are too many", positions, largest));
  }
  return std::make_shared<SpatialFeatures>(folder, format, positions, largest);
}

}  // namespace hdetach::tasks
