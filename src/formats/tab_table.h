// Tables of plain text: a row a line, fields apart by tabs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hdetach {

class TabTable {
 public:
  // `text` is borrowed; `name` opens every message. A row has `columns` fields, and the last one
  // takes what tabs are left. Any bytes are safe.
  TabTable(std::string_view text, std::string name, size_t columns);

  // Goes to the next row; false when there is none. Throws std::runtime_error, "x.tsv: line 3: what
  // is wrong", on too few fields and on bytes that are not UTF-8.
  bool next();
  std::string_view field(size_t column) const { return fields_[column]; }
  int64_t whole(size_t column) const;  // throws unless the field is a whole number

  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view rest_;
  std::string name_;
  int64_t line_ = 0;                      // of the row, from 1
  std::vector<std::string_view> fields_;  // of the row
};

}  // namespace hdetach
