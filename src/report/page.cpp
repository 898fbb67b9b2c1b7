#include "report/page.h"

#include <stdexcept>

// The assembler takes the file as it is: a string of this size would take a compiler seconds. The
// file is the page, or where that could not be built, the reason in words (cmake/build_page.cmake).
asm(R"(
  .pushsection .rodata
  .balign 16
hdetach_page_file_begin:
  .incbin ")" HDETACH_PAGE_FILE R"("
hdetach_page_file_end:
  .byte 0
  .popsection
)");

extern "C" {
extern const char hdetach_page_file_begin[], hdetach_page_file_end[];
}

namespace hdetach::report {
namespace {

constexpr std::string_view kPlace = "@REPORT_DATA@";

std::string_view page_file() {
  return {hdetach_page_file_begin,
          static_cast<size_t>(hdetach_page_file_end - hdetach_page_file_begin)};
}

}  // namespace

std::string_view page_template() {
  return page_file().find(kPlace) != std::string_view::npos ? page_file() : std::string_view();
}

std::string no_page_reason() {
  if (!page_template().empty()) return "";
  const std::string_view text = page_file();
  return std::string(text.substr(0, text.find('\n')));
}

std::string page(std::string_view page_template, std::string_view data) {
  const size_t place = page_template.find(kPlace);
  if (place == std::string_view::npos) {
    throw std::runtime_error("the page has no place for its data: " + std::string(kPlace));
  }
  std::string out;
  out.reserve(page_template.size() + data.size());
  out += page_template.substr(0, place);
  out += data;
  out += page_template.substr(place + kPlace.size());
  return out;
}

}  // namespace hdetach::report
