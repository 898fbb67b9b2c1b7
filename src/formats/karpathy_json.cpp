#include "formats/karpathy_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace hdetach::karpathy {
namespace {

// The fields that are read, those of an image first.
enum Field {
  kCocoId,
  kId,
  kImgId,  // ids in the order in which they are preferred
  kSplit,
  kFilePath,
  kFileName,
  kSentences,
  kRaw,
  kTokens,
  kOther
};
constexpr std::array<std::string_view, kOther> kFields = {
    "cocoid", "id", "imgid", "split", "filepath", "filename", "sentences", "raw", "tokens"};

bool is_id(Field field) { return field <= kImgId; }

// Adds the words of `token`, which should be one, to a caption.
void append_words(const std::string& token, std::string& caption) {
  constexpr char kBlank[] = " \t\n\v\f\r";
  for (size_t at = token.find_first_not_of(kBlank); at != std::string::npos;) {
    const size_t end = token.find_first_of(kBlank, at);
    caption += caption.empty() ? "" : " ";
    caption.append(token, at, end - at);
    at = token.find_first_not_of(kBlank, end);
  }
}

// Takes the file as it is parsed: one image is all that ever stands in memory.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  Reader(const std::string& file, const std::function<void(Image)>& take)
      : file_(file), take_(take) {}

  bool start_object(size_t) override {
    if (skips()) return deeper();
    if (place_ == Place::kFile) {
      place_ = Place::kTop;
    } else if (place_ == Place::kImages) {
      place_ = Place::kImage;
      image_ = Image();
      id_field_ = kOther;
      seen_ = 0;
      ++images_;
    } else if (place_ == Place::kSentences) {
      place_ = Place::kSentence;
      image_.captions.emplace_back();
      image_.words.emplace_back();
      seen_ &= ~(1u << kRaw | 1u << kTokens);
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (depth_ > 0) return shallower();
    if (place_ == Place::kTop) {
      if (!has_images_) fail("there is no list \"images\"");
      place_ = Place::kFile;
    } else if (place_ == Place::kImage) {
      if (id_field_ == kOther) fail("cocoid, id and imgid are missing; one is needed");
      if (!saw(kSplit)) fail("split is missing");
      if (image_.captions.empty()) fail("there are no captions (\"sentences\")");
      take_(std::move(image_));
      place_ = Place::kImages;
    } else {
      if (!saw(kRaw)) fail("a sentence has no \"raw\"");
      place_ = Place::kSentences;
    }
    return true;
  }

  bool key(std::string& key) override {
    if (depth_ > 0) return true;
    field_ = kOther;
    if (place_ == Place::kTop) {
      is_images_ = key == "images";
      if (is_images_ && std::exchange(has_images_, true)) fail("\"images\" stands twice");
      return true;
    }
    const bool in_image = place_ == Place::kImage;
    const size_t first = in_image ? 0 : kRaw, last = in_image ? kRaw : kOther;
    const auto at = std::find(kFields.begin() + first, kFields.begin() + last, key);
    if (at == kFields.begin() + last) return true;
    field_ = static_cast<Field>(at - kFields.begin());
    if (saw(field_)) fail(fmt::format("{} stands twice", key));
    seen_ |= 1u << field_;
    return true;
  }

  bool start_array(size_t) override {
    if (skips()) return deeper();
    if (place_ == Place::kTop) {
      place_ = Place::kImages;
    } else if (place_ == Place::kImage && field_ == kSentences) {
      place_ = Place::kSentences;
    } else if (place_ == Place::kSentence && field_ == kTokens) {
      place_ = Place::kTokens;
    } else {
      unexpected("a list");
    }
    return true;
  }

  bool end_array() override {
    if (depth_ > 0) return shallower();
    place_ = place_ == Place::kImages      ? Place::kTop
             : place_ == Place::kSentences ? Place::kImage
                                           : Place::kSentence;
    return true;
  }

  bool string(std::string& value) override {
    if (skips()) return true;
    if (place_ == Place::kTokens) {
      append_words(value, image_.words.back());
    } else if (place_ == Place::kSentence && field_ == kRaw) {
      image_.captions.back() = std::move(value);
    } else if (place_ == Place::kImage && field_ == kSplit) {
      image_.split = std::move(value);
    } else if (place_ == Place::kImage && field_ == kFilePath) {
      image_.folder = std::move(value);
    } else if (place_ == Place::kImage && field_ == kFileName) {
      image_.file = std::move(value);
    } else {
      unexpected("a text");
    }
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (skips()) return true;
    if (place_ != Place::kImage || !is_id(field_)) unexpected("a number");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail(fmt::format("{} is too large an id", value));
    }
    if (field_ < id_field_) {
      id_field_ = field_;
      image_.id = static_cast<int64_t>(value);
    }
    return true;
  }

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(int64_t) override { return scalar("a negative number"); }
  bool number_float(double, const std::string&) override { return scalar("a fraction"); }
  bool binary(nlohmann::json::binary_t&) override { return scalar("binary data"); }

  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    throw Error(fmt::format("{}: byte {}: this is not JSON, or not UTF-8", file_, at));
  }

 private:
  enum class Place { kFile, kTop, kImages, kImage, kSentences, kSentence, kTokens };

  // Whether the value that comes is one that nobody asked for.
  bool skips() const {
    if (depth_ > 0) return true;
    if (place_ == Place::kTop) return !is_images_;
    return (place_ == Place::kImage || place_ == Place::kSentence) && field_ == kOther;
  }
  bool deeper() {
    ++depth_;
    return true;
  }
  bool shallower() {
    --depth_;
    return true;
  }
  bool scalar(const char* what) {
    if (!skips()) unexpected(what);
    return true;
  }
  bool saw(Field field) const { return (seen_ >> field & 1) != 0; }

  [[noreturn]] void unexpected(const char* what) const {
    const std::string where = place_ == Place::kFile        ? "at the top"
                              : place_ == Place::kTop       ? "as images"
                              : place_ == Place::kImages    ? "among the images"
                              : place_ == Place::kSentences ? "among the sentences"
                                                            : "in " + std::string(kFields[field_]);
    fail(fmt::format("{} has no place {}", what, where));
  }

  [[noreturn]] void fail(const std::string& what) const {
    std::string where;
    if (place_ > Place::kImages) {
      where = fmt::format(" image {}", images_);
      if (id_field_ != kOther) where += fmt::format(" (id {})", image_.id);
      where += ":";
    }
    throw Error(file_ + ":" + where + " " + what);
  }

  const std::string& file_;
  const std::function<void(Image)>& take_;
  Place place_ = Place::kFile;
  bool is_images_ = false, has_images_ = false;  // the top's key; whether it has come
  Field field_ = kOther;                         // the key inside an image or a sentence
  int64_t depth_ = 0;                            // inside a value that is passed over
  int64_t images_ = 0;                           // that have begun
  Image image_;
  Field id_field_ = kOther;  // where image_.id comes from
  uint32_t seen_ = 0;        // fields of the image and of the sentence
};

}  // namespace

void read(std::string_view bytes, const std::string& name, const std::function<void(Image)>& take) {
  Reader reader(name, take);
  nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &reader);
}

}  // namespace hdetach::karpathy
