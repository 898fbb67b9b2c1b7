// The page of a report: one HTML file that needs nothing else. It is made in web/ and built into
// the program where npm was there at build time.
#pragma once

#include <string>
#include <string_view>

namespace hdetach::report {

// The page without its data, with @REPORT_DATA@ in the place of it; empty where the build had none.
std::string_view page_template();

// Why there is no page and how to get it; empty where there is one.
std::string no_page_reason();

// The template with `data`, which comes from page_data(), in its place.
std::string page(std::string_view page_template, std::string_view data);

}  // namespace hdetach::report
