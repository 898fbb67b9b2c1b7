// A caption as the rules of the tokeniser see it, and what a rule finds in it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "tasks/ptb/characters.h"

namespace hdetach::tasks::ptb {

class Text {
 public:
  explicit Text(std::string_view caption)
      : characters_(decode(caption)), size_(characters_.size()) {
    std::replace(characters_.begin(), characters_.end(), U'\n', U' ');  // as coco-caption does
    characters_ += U"\nA ";  // the caption that is taken to follow
  }

  size_t size() const { return size_; }
  char32_t operator[](size_t i) const { return i < characters_.size() ? characters_[i] : 0; }

  // Whether these small letters and signs stand at i, in capitals or not.
  bool says(size_t i, std::string_view word) const {
    if (i + word.size() > characters_.size()) return false;
    for (size_t k = 0; k < word.size(); ++k) {
      const char32_t c = characters_[i + k], wanted = static_cast<unsigned char>(word[k]);
      if (c != wanted && (!is_upper(c) || lower(c) != wanted)) return false;
    }
    return true;
  }

  // The length of the apostrophe at i, 0 where there is none.
  size_t apostrophe(size_t i) const {
    const char32_t c = (*this)[i];
    if (c == '\'' || c == 0x0092 || c == 0x2019) return 1;
    return c == '&' && says(i, "&apos;") ? 6 : 0;
  }
  // The same, or another quote that people type for one within words.
  size_t loose_apostrophe(size_t i) const {
    const char32_t c = (*this)[i];
    return c == '`' || c == 0x0091 || c == 0x2018 || c == 0x201B ? 1 : apostrophe(i);
  }

  // The end of the run of characters that `is` holds for, from i on.
  template <class Is>
  size_t run(size_t i, const Is& is) const {
    while (i < size_ && is(characters_[i])) ++i;
    return i;
  }

 private:
  std::u32string characters_;
  size_t size_;
};

// The token that the rules agree on at one place. The rule that has read the furthest wins, what it
// has read past its token included; among equals the first.
struct Match {
  size_t end = 0;    // of the token
  size_t reach = 0;  // of what was read

  void offer(size_t token_end) { offer(token_end, token_end); }
  void offer(size_t token_end, size_t read_end) {
    if (read_end <= reach) return;
    end = token_end;
    reach = read_end;
  }
};

// Punctuation that goes on with a sentence: before it a full stop belongs to the word.
inline bool continues_sentence(char32_t c) { return is_one_of(c, ",;:") || c == 0x3001; }

// The end of a run that rules ask for again and again while they move through it: found once for
// all places within, so that a long caption costs no more than its length.
class KnownRun {
 public:
  template <class Is>
  size_t end(const Text& text, size_t i, const Is& is) {
    if (i < begin_ || i >= end_) {
      begin_ = i;
      end_ = text.run(i, is);
    }
    return end_;
  }

 private:
  size_t begin_ = 0, end_ = 0;
};

}  // namespace hdetach::tasks::ptb
