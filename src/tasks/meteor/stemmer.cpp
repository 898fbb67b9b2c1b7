#include "tasks/meteor/stemmer.h"

#include <new>

#ifdef HDETACH_WITH_STEMMER
#include <libstemmer.h>
#endif

namespace hdetach::meteor {

#ifdef HDETACH_WITH_STEMMER
bool Stemmer::available() { return true; }

Stemmer::Stemmer() : handle_(sb_stemmer_new("english", "UTF_8")) {
  if (handle_ == nullptr) throw std::bad_alloc();
}

Stemmer::~Stemmer() { sb_stemmer_delete(handle_); }

std::string Stemmer::stem(std::string_view word) {
  const sb_symbol* stem = sb_stemmer_stem(handle_, reinterpret_cast<const sb_symbol*>(word.data()),
                                          static_cast<int>(word.size()));
  if (stem == nullptr) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(stem), static_cast<size_t>(sb_stemmer_length(handle_))};
}
#else
bool Stemmer::available() { return false; }
Stemmer::Stemmer() = default;
Stemmer::~Stemmer() = default;
std::string Stemmer::stem(std::string_view) { return {}; }
#endif

}  // namespace hdetach::meteor
