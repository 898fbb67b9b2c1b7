// What METEOR's -norm does to a line of English that is tokenised and in lower case: words with a
// dash and contractions come apart, symbols stand alone, dots leave most words they end.
#pragma once

#include <string>
#include <string_view>

namespace hdetach::meteor {

// The words, parted by spaces.
std::string normalize(std::string_view caption);

}  // namespace hdetach::meteor
