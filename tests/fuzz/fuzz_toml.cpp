// Any bytes as TOML: each key stands once, and what is read and written again reads the same.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "formats/toml.h"

namespace {

namespace toml = hdetach::toml;

std::string written(const toml::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value.data)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value.data)) return toml::number(*real);
  if (const auto* text = std::get_if<std::string>(&value.data)) return toml::quoted(*text);
  std::string out = "[";
  for (const toml::Value& item : std::get<toml::Array>(value.data)) out += written(item) + ",";
  return out + "]";
}

bool is_tables(const toml::Value& value) {
  const auto* array = std::get_if<toml::Array>(&value.data);
  return array != nullptr && !array->empty() &&
         std::holds_alternative<toml::Table>(array->front().data);
}

std::string written(const toml::Table& table) {
  std::string out, tables;
  std::set<std::string_view> keys;
  for (const auto& [key, value] : table) {
    if (!keys.insert(key).second) std::abort();
    if (const auto* one = std::get_if<toml::Table>(&value.data)) {
      tables += "[" + toml::quoted(key) + "]\n" + written(*one);
    } else if (is_tables(value)) {
      for (const toml::Value& item : std::get<toml::Array>(value.data)) {
        tables += "[[" + toml::quoted(key) + "]]\n" + written(std::get<toml::Table>(item.data));
      }
    } else {
      out += toml::quoted(key) + "=" + written(value) + "\n";
    }
  }
  return out + tables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  toml::Table table;
  try {
    table = toml::parse(std::string_view(reinterpret_cast<const char*>(data), size), "x");
  } catch (const toml::Error&) {
    return 0;
  }
  const std::string text = written(table);
  if (written(toml::parse(text, "again")) != text) std::abort();
  return 0;
}
