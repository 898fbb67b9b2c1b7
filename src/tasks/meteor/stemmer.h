// Snowball's English stemmer (Porter 2), which METEOR uses, from libstemmer.
#pragma once

#include <string>
#include <string_view>

struct sb_stemmer;

namespace hdetach::meteor {

// Not safe to share between threads.
class Stemmer {
 public:
  static bool available();  // whether the build found libstemmer; without it no word has a stem

  Stemmer();
  ~Stemmer();
  Stemmer(const Stemmer&) = delete;
  Stemmer& operator=(const Stemmer&) = delete;

  std::string stem(std::string_view word);

 private:
  sb_stemmer* handle_ = nullptr;
};

}  // namespace hdetach::meteor
