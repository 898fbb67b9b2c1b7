#include "formats/json_object.h"

#include <fmt/core.h>

#include <limits>
#include <stdexcept>
#include <utility>

namespace hdetach {

using nlohmann::json;

json strict_json(std::string_view text) {
  const bool whole = text.find('\0') == text.npos && text.substr(0, 3) != "\xEF\xBB\xBF";
  return whole ? json::parse(text, nullptr, false) : json(json::value_t::discarded);
}

JsonObject::JsonObject(const std::string& text, std::string place)
    : content_(strict_json(text)), place_(std::move(place)) {
  if (content_.is_discarded()) fail("not JSON");
  if (!content_.is_object()) fail("not a JSON object");
}

JsonObject::JsonObject(json content, std::string place)
    : content_(std::move(content)), place_(std::move(place)) {
  if (!content_.is_object()) fail("not a JSON object");
}

int64_t JsonObject::whole(const char* key) const {
  const json& value = member(key);
  if (!value.is_number_integer()) fail(fmt::format("{} is not a whole number", key));
  return value.get<int64_t>();
}

double JsonObject::number(const char* key) const {
  const json& value = member(key);
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) fail(fmt::format("{} is not a number", key));
  return value.get<double>();
}

std::string JsonObject::text(const char* key) const {
  const json& value = member(key);
  if (!value.is_string()) fail(fmt::format("{} is not a text", key));
  return value.get<std::string>();
}

const json& JsonObject::list(const char* key) const {
  const json& value = member(key);
  if (!value.is_array()) fail(fmt::format("{} is not a list", key));
  return value;
}

const json& JsonObject::object(const char* key) const {
  const json& value = member(key);
  if (!value.is_object()) fail(fmt::format("{} is not an object", key));
  return value;
}

bool JsonObject::has(const char* key) const {
  return content_.contains(key) && !content_[key].is_null();
}

void JsonObject::fail(const std::string& message) const {
  throw std::runtime_error(fmt::format("{}: {}", place_, message));
}

const json& JsonObject::member(const char* key) const {
  const auto it = content_.find(key);
  if (it == content_.end()) fail(fmt::format("{} is missing", key));
  return *it;
}

}  // namespace hdetach
