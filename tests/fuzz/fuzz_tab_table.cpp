// Any bytes as a table: the rows that are read, written again, are the text that was read.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "formats/tab_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t columns = 1 + data[0] % 4;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  hdetach::TabTable table(text, "x", columns);
  std::string again;
  try {
    while (table.next()) {
      for (size_t i = 0; i < columns; ++i) {
        again += i == 0 ? "" : "\t";
        again += table.field(i);
      }
      if (again.size() < text.size() && text[again.size()] == '\r') again += '\r';
      if (again.size() < text.size()) again += '\n';
      try {
        table.whole(0);
      } catch (const std::runtime_error&) {  // most are no numbers
      }
    }
  } catch (const std::runtime_error&) {
    if (text.substr(0, again.size()) != again) std::abort();
    return 0;
  }
  if (again != text) std::abort();
  return 0;
}
