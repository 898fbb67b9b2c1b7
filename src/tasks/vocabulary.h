// The words a captioner knows, by number.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace hdetach::tasks {

constexpr int32_t kPadding = 0, kStart = 1, kEnd = 2, kUnknown = 3;

class Vocabulary {
 public:
  // The four special words, then those of `captions` (words apart by single spaces) seen more than
  // `more_than` times, the most frequent first, equals in the order of their bytes.
  Vocabulary(const std::vector<std::string>& captions, int64_t more_than);
  // As words() gave them. Throws std::runtime_error unless the special words come first.
  explicit Vocabulary(std::vector<std::string> words);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const std::vector<std::string>& words() const { return words_; }
  int32_t code(const std::string& word) const;  // kUnknown when it is not there
  // The first `most` words of a caption.
  std::vector<int32_t> encode(const std::string& caption, int64_t most) const;
  // Up to the first kEnd; kPadding and kStart are left out.
  std::string text(const std::vector<int32_t>& codes) const;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> code_;
};

}  // namespace hdetach::tasks
