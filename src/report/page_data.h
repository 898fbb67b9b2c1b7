// What the page is given: one JSON object, described in web/DATA.md.
#pragma once

#include <string>
#include <vector>

#include "report/experiments.h"

namespace hdetach::report {

struct PageHeading {
  std::string title;
  std::vector<std::string> about;  // such as the command and the program's version
  std::string made;                // the time, as 2026-11-16T02:40:00Z
  bool watching = false;           // the page asks for newer data every few seconds
};

// Safe inside a <script>: it has no '<' and no line end that JavaScript knows and JSON does not.
std::string page_data(const Experiments& experiments, const PageHeading& heading);

std::string utc_time_now();  // for PageHeading::made

}  // namespace hdetach::report
