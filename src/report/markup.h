// Text inside HTML and SVG.
#pragma once

#include <string>

namespace hdetach::report {

// As text and as the value of an attribute. What XML cannot hold becomes a question mark: control
// characters, and all beyond ASCII where the text is not UTF-8.
std::string escaped(const std::string& text);

}  // namespace hdetach::report
