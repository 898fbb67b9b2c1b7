#include "train/seal.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "formats/checksum.h"

namespace hdetach::train {
namespace {

constexpr char kKey[] = "checksum", kBefore[] = "\"checksum\":\"";
constexpr size_t kDigits = 16;

// Where the digits stand; npos where there are none.
size_t digits_in(std::string_view bytes) {
  const size_t before = bytes.find(kBefore);
  const size_t at = before == bytes.npos ? before : before + sizeof(kBefore) - 1;
  return at == bytes.npos || bytes.size() - at < kDigits ? bytes.npos : at;
}

std::string checksum_around(std::string_view bytes, size_t digits) {
  Checksum checksum;
  checksum.add(bytes.substr(0, digits));
  checksum.add(bytes.substr(digits + kDigits));
  return checksum.text();
}

// The first line tells a text whose last one was cut off from one of an earlier version.
constexpr char kFirstLine[] = "# The last line is a checksum of those above.\n";
constexpr char kLine[] = "# checksum ";

std::string last_line(std::string_view text) {
  Checksum checksum;
  checksum.add(text);
  return kLine + checksum.text() + "\n";
}

[[noreturn]] void damaged(const std::string& name) {
  throw std::runtime_error(
      fmt::format("{} is damaged: its checksum is not that of its bytes; restore the file from a "
                  "copy, or train again into another folder",
                  name));
}

}  // namespace

std::string sealed(const std::vector<safetensors::View>& arrays, safetensors::Metadata metadata) {
  metadata[kKey] = std::string(kDigits, '0');
  std::string bytes = safetensors::serialize(arrays, metadata);
  const size_t digits = digits_in(bytes);  // metadata comes first, and this key first in it
  return bytes.replace(digits, kDigits, checksum_around(bytes, digits));
}

safetensors::File parse_sealed(std::string bytes, const std::string& name) {
  safetensors::File file = safetensors::parse(std::move(bytes), name);
  const auto found = file.metadata.find(kKey);
  // Earlier versions wrote no other key than this one; anything else is a damaged checksum.
  const bool is_old =
      found == file.metadata.end() &&
      std::all_of(file.metadata.begin(), file.metadata.end(), [](const auto& entry) {
        return entry.first == "format" && entry.second == "pt";
      });
  if (is_old) return file;
  const size_t digits = digits_in(file.bytes);
  if (found == file.metadata.end() || digits == std::string::npos ||
      found->second != checksum_around(file.bytes, digits)) {
    damaged(name);
  }
  return file;
}

std::string sealed_text(const std::string& text) {
  const std::string all = kFirstLine + text;
  return all + last_line(all);
}

bool is_sealed_text(const std::string& text) {
  return text.rfind(kLine) != text.npos || text.rfind(kFirstLine, 0) == 0;
}

bool check_sealed_text(const std::string& text, const std::string& name) {
  if (!is_sealed_text(text)) return false;
  const size_t line = text.rfind(kLine);
  if (line == text.npos || text.substr(line) != last_line(std::string_view(text).substr(0, line))) {
    damaged(name);
  }
  return true;
}

std::string sealed_json(const std::string& object) {
  Checksum checksum;
  checksum.add(object);
  return object.substr(0, object.size() - 1) + "," + kBefore + checksum.text() + "\"}\n";
}

bool check_sealed_json(const std::string& text, const std::string& name) {
  const size_t member = text.rfind(std::string(",") + kBefore);
  if (member == text.npos) return false;
  if (text != sealed_json(text.substr(0, member) + "}")) damaged(name);
  return true;
}

}  // namespace hdetach::train
