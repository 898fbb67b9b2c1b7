// TOML, the part that configurations need: comments, bare and quoted keys, strings of one line
// (basic and literal), integers, floats, booleans, arrays, [tables] and [[arrays of tables]].
// Dates, dotted keys, inline tables and strings of several lines are refused by name.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hdetach::toml {

struct Value;
struct Entry;
using Array = std::vector<Value>;
using Table = std::vector<Entry>;  // in the order of the file, each key once

struct Value {
  std::variant<bool, int64_t, double, std::string, Array, Table> data;
  int line = 0;  // of the file, from 1
};

struct Entry {
  std::string key;
  Value value;
};

// "experiments/x.toml:3: what is wrong and what to do"
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `name` stands in the messages. Any bytes are safe: what is not this part of TOML throws Error.
Table parse(std::string_view text, const std::string& name);

// Null when the table has no such key.
const Value* find(const Table& table, std::string_view key);

bool is_utf8(std::string_view text);
// `text`, which is UTF-8, as a basic string, quotes included.
std::string quoted(std::string_view text);
// The shortest text that reads back as the same float, always with a point or an exponent.
std::string number(double value);

}  // namespace hdetach::toml
