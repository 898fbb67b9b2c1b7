// What the program prints. Output that is lost (a full disk, a closed descriptor) never stops the
// work whose progress it tells, but it makes the program fail at its end.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace hdetach::cli {

// Standard descriptors that are closed would be given to the next files that are opened, and what
// is printed would go there. For the first lines of main.
void open_standard_descriptors();

// None of these throws. The first failure on standard output is kept for lost_output().
void put(FILE* stream, std::string_view text);
void flush(FILE* stream);

template <class... Values>
void print(FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  put(stream, fmt::format(format, std::forward<Values>(values)...));
}

template <class... Values>
void print(fmt::format_string<Values...> format, Values&&... values) {
  put(stdout, fmt::format(format, std::forward<Values>(values)...));
}

// Flushes standard output; throws std::runtime_error where any of it was lost. For commands that
// work for nothing else: they end at once.
void flush_output();

// Flushes standard output and says what became of it: empty, or the message of a failure, once.
std::string lost_output();

}  // namespace hdetach::cli
