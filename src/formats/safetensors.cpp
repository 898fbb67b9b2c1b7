#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace hdetach::safetensors {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "arrays are written as they lie in memory");

constexpr size_t kPrefix = 8;                // bytes that hold the size of the header
constexpr size_t kMostHeader = 100'000'000;  // the format's own limit
constexpr char kMetadata[] = "__metadata__";

struct Dtype {
  std::string_view name;
  size_t size;  // bytes
};

constexpr Dtype kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                             {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                             {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

// Bytes of an element; 0 for a type that the format does not have.
size_t element_size(std::string_view name) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name == name) return dtype.size;
  }
  return 0;
}

// False where the array has a negative dimension or more bytes than a number holds.
bool array_size(size_t element, const std::vector<int64_t>& shape, size_t& size) {
  size = element;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(size, static_cast<size_t>(dimension), &size)) {
      return false;
    }
  }
  return true;
}

template <class Numbers>
std::string json_list(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return "[" + text + "]";
}

// For messages: a file decides how long its names and shapes are.
std::string cut(std::string text) {
  constexpr size_t kMost = 60;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

std::string shown(const std::string& text) {
  using nlohmann::json;
  return cut(json(text).dump(-1, ' ', true, json::error_handler_t::replace));
}

// Reads the header and counts its bytes: the JSON library tells no positions.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

struct Info {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> offsets;  // begin and end, from the end of the header
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Takes the header as it is parsed, so that nothing is ever nested deeper than the format nests.
class Header : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Header(const std::string& file) : file_(file) {}

  [[noreturn]] void fail(const std::string& what) const { fail(offset, what); }
  [[noreturn]] void fail(size_t at, const std::string& what) const {
    throw Error(file_ + ": byte " + std::to_string(at) + ": " + what);
  }

  size_t offset = kPrefix;  // of the next byte to be read
  Metadata metadata;
  std::vector<Info> arrays;

  bool start_object(size_t) override {
    if (place_ == Place::kFile) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = is_metadata_ ? Place::kMetadata : Place::kArray;
      if (!is_metadata_) arrays.push_back(Info{key_, {}, {}, {}});
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kArray) check(arrays.back());
    place_ = place_ == Place::kTop ? Place::kFile : Place::kTop;
    return true;
  }

  bool key(std::string& key) override {
    key_ = key;
    if (place_ == Place::kTop) {
      is_metadata_ = key == kMetadata;
      if (!names_.insert(key).second) fail("" + shown(key) + " stands twice in the header");
    } else if (place_ == Place::kMetadata) {
      if (metadata.count(key) != 0) fail("" + shown(key) + " stands twice in " + kMetadata);
    } else {
      Info& info = arrays.back();
      bool* const seen = key == "dtype"          ? &info.has_dtype
                         : key == "shape"        ? &info.has_shape
                         : key == "data_offsets" ? &info.has_offsets
                                                 : nullptr;
      if (seen == nullptr)
        fail("array " + shown(info.name) + " has an unknown field " + shown(key));
      if (*seen) fail("array " + shown(info.name) + " has two fields " + shown(key));
      *seen = true;
    }
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kArray || key_ == "dtype") unexpected("a list");
    place_ = Place::kList;
    return true;
  }

  bool end_array() override {
    place_ = Place::kArray;
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = std::move(value);
    } else if (place_ == Place::kArray && key_ == "dtype") {
      arrays.back().dtype = std::move(value);
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kList) unexpected("a number");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail("array " + shown(arrays.back().name) + ": " + std::to_string(value) + " is too large");
    }
    Info& info = arrays.back();
    (key_ == "shape" ? info.shape : info.offsets).push_back(static_cast<int64_t>(value));
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override {
    unexpected("a fraction or a number beyond 64 bits");
  }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override {
    fail("the header is not valid JSON");
  }

 private:
  enum class Place { kFile, kTop, kMetadata, kArray, kList };

  void check(const Info& info) const {
    const auto fail_array = [&](const std::string& what) {
      fail("array " + shown(info.name) + ": " + what);
    };
    if (!info.has_dtype || !info.has_shape || !info.has_offsets) {
      fail_array("dtype, shape or data_offsets is missing");
    }
    const size_t element = element_size(info.dtype);
    if (element == 0) fail_array("unknown dtype " + shown(info.dtype));
    if (info.offsets.size() != 2 || info.offsets[0] > info.offsets[1]) {
      fail_array("data_offsets " + cut(json_list(info.offsets)) + " are not a begin and an end");
    }
    const auto bytes = static_cast<size_t>(info.offsets[1] - info.offsets[0]);
    size_t size = 0;
    if (!array_size(element, info.shape, size) || size != bytes) {
      fail_array(std::to_string(bytes) + " bytes do not match dtype " + info.dtype + " and shape " +
                 cut(json_list(info.shape)));
    }
  }

  [[noreturn]] void unexpected(const std::string& what) const {
    fail("the header has " + what + " where the format has none" +
         (key_.empty() ? "" : ", at or after " + shown(key_)));
  }

  const std::string& file_;
  Place place_ = Place::kFile;
  bool is_metadata_ = false;
  std::string key_;
  std::unordered_set<std::string> names_;
};

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error("safetensors: a name or a metadata string is not UTF-8; write it as UTF-8");
  }
}

// Larger elements first, so that every array starts at a multiple of its element's size.
std::vector<const View*> in_order(const std::vector<View>& arrays) {
  std::vector<const View*> ordered(arrays.size());
  std::transform(arrays.begin(), arrays.end(), ordered.begin(), [](const View& v) { return &v; });
  std::stable_sort(ordered.begin(), ordered.end(), [](const View* a, const View* b) {
    return element_size(a->dtype) > element_size(b->dtype);
  });
  return ordered;
}

// The header with its size before it, and where each array ends after it.
struct Start {
  std::string bytes;
  std::vector<size_t> ends;
};

Start start_of(const std::vector<const View*>& ordered, const Metadata& metadata) {
  std::string header;
  const auto add = [&header](const std::string& key, const std::string& value) {
    header += (header.empty() ? "" : ",") + json_string(key) + ":" + value;
  };
  for (const auto& [key, value] : metadata) add(key, json_string(value));
  if (!metadata.empty()) header = json_string(kMetadata) + ":{" + header + "}";

  std::unordered_set<std::string> names{kMetadata};
  Start start;
  size_t end = 0;
  for (const View* view : ordered) {
    const std::string what = "safetensors: array " + shown(view->name);
    const size_t element = element_size(view->dtype), begin = end;
    size_t size = 0;
    if (!names.insert(view->name).second) throw Error(what + ": the name is taken; choose another");
    if (element == 0) throw Error(what + ": the format has no dtype " + shown(view->dtype));
    if (!array_size(element, view->shape, size) || __builtin_add_overflow(begin, size, &end)) {
      throw Error(what + ": the shape is negative or too large");
    }
    start.ends.push_back(end);
    add(view->name, "{\"dtype\":\"" + view->dtype + "\",\"shape\":" + json_list(view->shape) +
                        ",\"data_offsets\":" + json_list(std::array<size_t, 2>{begin, end}) + "}");
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMostHeader) throw Error("safetensors: the header is larger than 100 MB");

  const uint64_t header_size = header.size();
  start.bytes.assign(reinterpret_cast<const char*>(&header_size), kPrefix);
  start.bytes += header;
  return start;
}

}  // namespace

const Array* Contents::find(const std::string& name) const {
  for (const Array& array : arrays) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

std::string serialize(const std::vector<View>& arrays, const Metadata& metadata) {
  const std::vector<const View*> ordered = in_order(arrays);
  auto [bytes, ends] = start_of(ordered, metadata);
  bytes.reserve(bytes.size() + (ends.empty() ? 0 : ends.back()));
  size_t begin = 0;
  for (size_t i = 0; i < ordered.size(); begin = ends[i++]) {
    if (ends[i] > begin) bytes.append(static_cast<const char*>(ordered[i]->data), ends[i] - begin);
  }
  return std::move(bytes);
}

std::string serialize_header(const std::vector<View>& arrays, const Metadata& metadata) {
  return start_of(in_order(arrays), metadata).bytes;
}

File parse(std::string bytes, const std::string& name) {
  File file;
  file.bytes = std::move(bytes);
  static_cast<Contents&>(file) = read_header(file.bytes, name);
  return file;
}

Contents read_header(std::string_view bytes, const std::string& name) {
  Header header(name);
  if (bytes.size() < kPrefix) {
    header.fail(bytes.size(), "the file ends inside the size of its header, which has 8 bytes");
  }
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), kPrefix);
  if (header_size > kMostHeader || header_size > bytes.size() - kPrefix) {
    header.fail(0, "a header of " + std::to_string(header_size) +
                       " bytes is promised, in a file of " + std::to_string(bytes.size()) +
                       "; the most is " + std::to_string(kMostHeader));
  }
  const char* const begin = bytes.data() + kPrefix;
  const char* const end = begin + header_size;
  if (header_size == 0 || *begin != '{') header.fail(kPrefix, "the header must start with {");
  // The JSON library takes a zero byte for the end and would not look at what follows.
  const char* const zero = std::find(begin, end, '\0');
  if (zero != end) header.fail(static_cast<size_t>(zero - bytes.data()), "zero byte in the header");
  nlohmann::json::sax_parse(Cursor(begin, &header.offset), Cursor(end, &header.offset), &header);

  std::vector<Info>& infos = header.arrays;
  std::stable_sort(infos.begin(), infos.end(),
                   [](const Info& a, const Info& b) { return a.offsets < b.offsets; });
  const size_t data = kPrefix + header_size, data_size = bytes.size() - data;
  Contents contents;
  size_t covered = 0;
  for (Info& info : infos) {
    const auto first = static_cast<size_t>(info.offsets[0]);
    const auto last = static_cast<size_t>(info.offsets[1]);
    const char* const wrong = first < covered    ? " overlaps the one before it"
                              : first > covered  ? " leaves a hole before it"
                              : last > data_size ? " reaches beyond the end of the file"
                                                 : nullptr;
    if (wrong != nullptr) {
      header.fail(data + std::min(first, covered), "array " + shown(info.name) + wrong);
    }
    covered = last;
    contents.arrays.push_back(Array{std::move(info.name), std::move(info.dtype),
                                    std::move(info.shape), bytes.data() + data + first,
                                    last - first});
  }
  if (covered != data_size) {
    header.fail(data + covered,
                "no array covers the last " + std::to_string(data_size - covered) + " bytes");
  }
  contents.metadata = std::move(header.metadata);
  return contents;
}

}  // namespace hdetach::safetensors
