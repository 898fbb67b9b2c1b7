// A JSON object of a file, whose members are fetched with messages that name the place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hdetach {

// All of `text` as JSON, discarded (json::is_discarded) where it is none. nlohmann's own parser
// ends at a NUL byte, whatever follows, and skips a byte order mark: no other reader takes such a
// text.
nlohmann::json strict_json(std::string_view text);

class JsonObject {
 public:
  // `place` ("metrics.jsonl:3") opens every message. All throw std::runtime_error.
  JsonObject(const std::string& text, std::string place);
  JsonObject(nlohmann::json content, std::string place);

  int64_t whole(const char* key) const;
  double number(const char* key) const;  // NaN for null: JSON has none
  std::string text(const char* key) const;
  const nlohmann::json& list(const char* key) const;
  const nlohmann::json& object(const char* key) const;
  bool has(const char* key) const;  // and it is not null

  [[noreturn]] void fail(const std::string& message) const;

 private:
  const nlohmann::json& member(const char* key) const;

  nlohmann::json content_;
  std::string place_;
};

}  // namespace hdetach
