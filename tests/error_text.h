// What a call on a folder throws, in words that do not depend on where the folder is.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace hdetach::test {

// Each mention of the folder is replaced by DIR.
template <class Call>
std::string error_text(const std::filesystem::path& folder, const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    std::string text = error.what();
    const std::string name = folder.string();
    for (size_t at; (at = text.find(name)) != std::string::npos;) {
      text.replace(at, name.size(), "DIR");
    }
    return text;
  }
  return "no error";
}

}  // namespace hdetach::test
