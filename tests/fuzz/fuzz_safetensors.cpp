// Any bytes as a safetensors file: the arrays of what is read cover its data, and what is written
// again reads the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors.h"

namespace {

namespace safetensors = hdetach::safetensors;

bool same(const safetensors::Array& a, const safetensors::Array& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.size == b.size &&
         std::equal(a.data, a.data + a.size, b.data);
}

uint64_t header_end(const std::string& bytes) {
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  return sizeof(size) + size;
}

bool check(std::string bytes) {
  safetensors::File file;
  try {
    // Where no zero ends the bytes, as none ends a mapped file.
    const std::vector<char> mapped(bytes.begin(), bytes.end());
    safetensors::read_header({mapped.data(), mapped.size()}, "x");
    file = safetensors::parse(std::move(bytes), "x");
  } catch (const safetensors::Error&) {
    return false;
  }
  const char* next = file.bytes.data() + header_end(file.bytes);
  std::vector<safetensors::View> views;
  for (const safetensors::Array& array : file.arrays) {
    if (array.data != next) std::abort();
    next += array.size;
    views.push_back({array.name, array.dtype, array.shape, array.data});
  }
  if (next != file.bytes.data() + file.bytes.size()) std::abort();
  // Refuses a name that stands twice, by an exception that nothing catches.
  const auto again = safetensors::parse(safetensors::serialize(views, file.metadata), "again");
  if (again.metadata != file.metadata || again.arrays.size() != file.arrays.size()) std::abort();
  for (const safetensors::Array& array : file.arrays) {
    const safetensors::Array* found = again.find(array.name);
    if (found == nullptr || !same(array, *found)) std::abort();
  }
  return true;
}

std::string with_size(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  std::string prefix(sizeof(size), '\0');
  std::memcpy(prefix.data(), &size, sizeof(size));
  return prefix + header + data;
}

// A file in good form whose sizes and offsets the input draws, true ones or nearly: bytes at random
// do not find their way through the JSON. Says whether all are true and no name stands twice.
std::pair<std::string, bool> nearly_true_file(const uint8_t* input, size_t size) {
  const char* const dtypes[] = {"U8", "F16", "F32", "I64"};
  std::string header = "{";
  bool truthful = true;
  uint64_t end = 0, names = 0;
  // Mostly 0; an unsigned number wraps where the lie is negative.
  const auto lie = [&truthful](unsigned draw) -> uint64_t {
    if (draw % 16 != 0) return 0;
    truthful = false;
    return draw / 16 % 2 == 0 ? 1 : ~uint64_t{0};
  };
  size_t at = 0;
  for (; at + 6 <= size && at < 24; at += 6) {
    const uint8_t* draws = input + at;
    const unsigned name = draws[0] % 32, type = draws[1] % 4, rows = draws[2] % 5,
                   columns = draws[3] % 4;
    truthful = truthful && (names >> name & 1) == 0;
    names |= uint64_t{1} << name;
    const uint64_t begin = end + lie(draws[4]);
    end += uint64_t{rows} * columns << type;
    header += (at == 0 ? "\"" : ",\"") + std::string(1, static_cast<char>('a' + name % 26)) +
              (name < 26 ? "" : "'") + "\":{\"dtype\":\"" + dtypes[type] + "\",\"shape\":[" +
              std::to_string(rows) + "," + std::to_string(columns) + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(end + lie(draws[5])) + "]}";
  }
  if (at < size) end += lie(input[at]);
  return {with_size(header + "}", std::string(std::min<uint64_t>(end, 4096), 'x')), truthful};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  check(bytes);
  // As a header up to the last brace, its true size before it: damage then reaches what follows.
  const size_t brace = bytes.rfind('}') + 1;
  check(with_size(bytes.substr(0, brace), bytes.substr(brace)));
  auto [file, truthful] = nearly_true_file(data, size);
  if (!check(std::move(file)) && truthful) std::abort();  // two lies may make a truth
  return 0;
}
