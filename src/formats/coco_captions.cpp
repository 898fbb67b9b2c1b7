#include "formats/coco_captions.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace hdetach::coco {
namespace {

using nlohmann::json;

// Reads as the parser goes: the whole of COCO's annotations as a tree would take a gigabyte. Depth
// counts the lists and objects that are open.
class Reader : public nlohmann::json_sax<json> {
 public:
  // The captions are the elements of the list that `key` of the outermost object holds, or of the
  // outermost list where there is no key.
  Reader(std::string name, std::string key) : name_(std::move(name)), key_(std::move(key)) {}

  std::vector<Caption> take() {
    if (!seen_list_) fail("there is no " + key_);
    return std::move(captions_);
  }

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_float(double, const std::string&) override { return scalar(); }
  bool binary(json::binary_t&) override { return scalar(); }
  bool number_integer(int64_t value) override {
    whole_ = value;
    return scalar();
  }
  bool number_unsigned(uint64_t value) override {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    if (value <= kMost) whole_ = static_cast<int64_t>(value);
    return scalar();
  }
  bool string(std::string& value) override {
    text_ = std::move(value);
    return scalar();
  }
  bool key(std::string& name) override {
    if (depth_ == list_depth() + 1 || depth_ == 1) member_ = std::move(name);
    return true;
  }

  bool start_array(size_t) override {
    if (at_list()) {
      captions_.clear();  // of two with this key the last counts
      in_list_ = seen_list_ = true;
    } else {
      check_container(false);
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (in_list_ && depth_ == list_depth() - 1) in_list_ = false;
    return true;
  }
  bool start_object(size_t) override {
    check_container(true);
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (!in_list_ || depth_ != list_depth()) return true;
    if (!image_id_) fail_entry("image_id is missing");
    if (!caption_) fail_entry("caption is missing");
    captions_.push_back({*image_id_, std::move(*caption_)});
    image_id_.reset();
    caption_.reset();
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    const bool utf8 = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    fail("byte " + std::to_string(position) + ": not " + (utf8 ? "UTF-8" : "JSON"));
  }

 private:
  int list_depth() const { return key_.empty() ? 1 : 2; }
  bool at_list() const {
    return depth_ == list_depth() - 1 && (key_.empty() || member_ == key_) && !in_list_;
  }

  // A list or an object that is not the list of captions.
  void check_container(bool is_object) {
    if (depth_ == 0 && !(is_object && !key_.empty())) {
      fail(key_.empty() ? "not a list" : "not an object");
    }
    if (at_list()) fail(key_ + " is not a list");
    if (!in_list_) return;
    if (depth_ == list_depth() && !is_object) fail_entry("not an object");
    if (depth_ == list_depth() + 1) check_type(false, false);
  }

  bool scalar() {
    const std::optional<int64_t> whole = std::exchange(whole_, std::nullopt);
    std::optional<std::string> text = std::exchange(text_, std::nullopt);
    if (depth_ == 0) fail(key_.empty() ? "not a list" : "not an object");
    if (at_list()) fail(key_ + " is not a list");
    if (!in_list_) return true;
    if (depth_ == list_depth()) fail_entry("not an object");
    if (depth_ != list_depth() + 1) return true;
    check_type(whole.has_value(), text.has_value());
    if (member_ == "image_id") image_id_ = whole;
    if (member_ == "caption") caption_ = std::move(text);
    return true;
  }

  void check_type(bool is_whole, bool is_text) const {
    if (member_ == "image_id" && !is_whole) fail_entry("image_id is not a whole number");
    if (member_ == "caption" && !is_text) fail_entry("caption is not a text");
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(name_ + ": " + what); }
  [[noreturn]] void fail_entry(const std::string& what) const {
    const std::string image = image_id_ ? " (image " + std::to_string(*image_id_) + ")" : "";
    fail((key_.empty() ? "entry " : key_ + " entry ") + std::to_string(captions_.size()) + image +
         ": " + what);
  }

  const std::string name_, key_;
  int depth_ = 0;
  bool in_list_ = false, seen_list_ = false;
  std::string member_;  // the latest key, of the outermost object or of an entry
  std::optional<int64_t> whole_;
  std::optional<std::string> text_;
  std::optional<int64_t> image_id_;
  std::optional<std::string> caption_;
  std::vector<Caption> captions_;
};

std::vector<Caption> parse(const std::string& text, const std::string& name,
                           const std::string& key) {
  Reader reader(name, key);
  json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace

std::vector<Caption> parse_references(const std::string& text, const std::string& name) {
  return parse(text, name, "annotations");
}

std::vector<Caption> parse_candidates(const std::string& text, const std::string& name) {
  return parse(text, name, "");
}

}  // namespace hdetach::coco
