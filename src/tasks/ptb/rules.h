// The rules of the tokeniser, by what they look for. Each offers what it finds at `at`.
#pragma once

#include <cstddef>

#include "tasks/ptb/text.h"

namespace hdetach::tasks::ptb {

// A word of plain letters before a blank, as most are: no other rule finds anything else there.
bool match_plain_word(const Text& text, size_t at, Match& best);

// Words and what sticks to them: contractions, compounds, words with a full stop of their own.
class WordRules {
 public:
  void match(const Text& text, size_t at, Match& best);

 private:
  KnownRun pieces_;
};

// Past "'s", "'re" and their like; i where there is none.
size_t contraction_end(const Text& text, size_t i);

// Abbreviations keep their full stop.
void match_abbreviation(const Text& text, size_t at, Match& best);

// Numbers, dates, times, fractions, telephone numbers.
void match_number(const Text& text, size_t at, Match& best);

// Addresses of pages and people, hashtags, tags of a markup language.
class AddressRules {
 public:
  void match(const Text& text, size_t at, Match& best);

 private:
  void match_page(const Text& text, size_t at, Match& best);
  void match_person(const Text& text, size_t at, Match& best);
  void match_tag(const Text& text, size_t at, Match& best);

  KnownRun declaration_;
  // As KnownRun, with what was found there: the last ".com" or the like in a run of names with full
  // stops between, the last "@" in a run without blanks and brackets.
  size_t names_begin_ = 0, names_end_ = 0, domain_dot_ = 0, domain_end_ = 0;
  size_t unbroken_begin_ = 0, unbroken_end_ = 0, last_at_sign_ = 0;
};

// Everything else: apostrophes and quotes, brackets, faces, dots and signs.
void match_sign(const Text& text, size_t at, Match& best);

}  // namespace hdetach::tasks::ptb
