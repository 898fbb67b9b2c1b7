#include <algorithm>
#include <string_view>

#include "tasks/ptb/rules.h"

namespace hdetach::tasks::ptb {
namespace {

using std::string_view;

// The length of a letter, which may be written "&eacute;"; 0 where there is none.
size_t letter(const Text& text, size_t i) {
  if (text[i] != '&') return is_letter(text[i]) ? 1 : 0;
  if (!is_one_of(lower(text[i + 1]), "aeiou")) return 0;
  for (const string_view accent : {"acute;", "grave;", "uml;"}) {
    if (text.says(i + 2, accent)) return 2 + accent.size();
  }
  return 0;
}

// Letters and digits, led by a letter; signs that end sentences may stand between: "end.Start".
size_t word_end(const Text& text, size_t i) {
  size_t length = letter(text, i);
  while (length > 0) {
    i += length;
    length = is_digit(text[i]) ? 1 : letter(text, i);
    if (length == 0 && is_one_of(text[i], ".!?") && letter(text, i + 1) > 0) {
      length = 1 + letter(text, i + 1);
    }
  }
  return i;
}

bool is_hyphen(char32_t c) {
  return c == '-' || c == '_' || c == 0x058A || c == 0x2010 || c == 0x2011;
}

bool is_piece(char32_t c) { return is_ascii_word(c) || c == kSoftHyphen; }

// "clock", "o'clock", "l'eau"; i where there is nothing.
size_t part_end(const Text& text, size_t i) {
  if (is_one_of(lower(text[i]), "dol")) {
    const size_t quote = text.loose_apostrophe(i + 1);
    const size_t begin = i + 1 + quote, end = text.run(begin, is_word);
    if (quote > 0 && end - std::min(begin, end) >= 2) return end;
  }
  return text.run(i, is_word);
}

// "six-o'clock"
size_t compound_end(const Text& text, size_t at) {
  size_t end = part_end(text, at);
  while (end > at && is_hyphen(text[end])) {
    const size_t next = part_end(text, end + 1);
    if (next == end + 1) break;
    end = next;
  }
  return end;
}

// "1,000-pound", "U.S.-based", "non-U.S."; `head` is the end of its first piece. 0 for none.
size_t hyphenated_end(const Text& text, size_t head) {
  size_t end = 0;
  while (text[head] == '-') {
    size_t next = text.run(head + 1, is_piece);
    size_t letters = 0;
    for (size_t i = head + 1; is_ascii_letter(text[i]) && text[i + 1] == '.'; i += 2) {
      if (++letters > 1) next = std::max(next, i + 2);
    }
    if (next == head + 1) break;
    head = end = next;
  }
  return end;
}

// Words and numbers, each with up to two more words behind hyphens.
size_t alternative_end(const Text& text, size_t i) {
  size_t end = text.run(i, is_ascii_word);
  for (int more = 0; more < 2 && end > i && text[end] == '-'; ++more) {
    const size_t next = text.run(end + 1, is_ascii_letter);
    if (next == end + 1) break;
    end = next;
  }
  return end;
}

// "and/or", up to three of them; 0 for less than two.
size_t alternatives_end(const Text& text, size_t at) {
  size_t end = alternative_end(text, at), found = 0;
  for (int more = 0; more < 2; ++more) {
    const size_t slash = text[end] == '\\' ? end + 1 : end;
    if (text[slash] != '/') break;
    const size_t next = alternative_end(text, slash + 1);
    if (next == slash + 1) break;
    end = found = next;
  }
  return found;
}

// "AT&T"; 0 for none.
size_t joined_capitals_end(const Text& text, size_t at) {
  size_t end = text.run(at, is_upper), found = 0;
  while (end > at && (text[end] == '&' || text[end] == '+')) {
    const size_t begin = end + (text.says(end, "&amp;") ? 5 : 1);
    const size_t next = text.run(begin, is_upper);
    if (next == begin) break;
    end = found = next;
  }
  return found;
}

// A word, and its full stop where the sentence goes on behind it. 0 is no word.
void offer_word(const Text& text, size_t end, Match& best) {
  if (end == 0) return;
  best.offer(end);
  if (text[end] == '.' && continues_sentence(text[end + 1])) best.offer(end + 1, end + 2);
}

// Words that are two: "can not", "gon na".
void match_assimilation(const Text& text, size_t at, Match& best) {
  if (text.says(at, "cannot")) best.offer(at + 3, at + 6);
  for (const string_view word : {"gonna", "gotta", "lemme", "gimme", "wanna"}) {
    if (text.says(at, word)) best.offer(at + 3, at + 5);
  }
}

void match_special(const Text& text, size_t at, Match& best) {
  for (const string_view word : {"c++", "c#", "f#", "c.d.s", "pro-", "anti-", "s&p-500",
                                 "s&amp;p-500", "s&ls", "s&amp;ls", "e!", "yahoo!", "jeopardy!"}) {
    if (text.says(at, word)) best.offer(at + word.size());
  }
}

// "do" before "n't". The n belongs to the second part, so the first cannot end in another.
void match_negated(const Text& text, size_t at, Match& best) {
  const auto is_letter_or_soft = [](char32_t c) { return is_ascii_letter(c) || c == kSoftHyphen; };
  const size_t end = text.run(at, is_letter_or_soft);
  const size_t quote = text.loose_apostrophe(end);
  if (quote == 0 || lower(text[end - 1]) != 'n' || lower(text[end + quote]) != 't') return;
  const size_t read = end + quote + 1;
  size_t last = end - 1;  // behind the last letter of the first part
  while (last > at && text[last - 1] == kSoftHyphen) --last;
  if (last > at && lower(text[last - 1]) != 'n') best.offer(end - 1, read);
  if (end == at + 1) best.offer(read, is_ascii_letter(text[read]) ? read : read + 1);
}

// Words with an apostrophe that is no contraction.
void match_apostrophe_word(const Text& text, size_t at, Match& best) {
  const size_t end = text.run(at, is_letter), letters = end - at;
  const size_t quote = text.loose_apostrophe(end), after = end + quote;
  if (letters == 0 || quote == 0) return;
  const char32_t first = text[at], next = text[after];
  if (text.apostrophe(end) > 0) {
    if (letters == 1 && is_one_of(lower(first), "ldj")) best.offer(after);
    for (const string_view word : {"dunkin", "somethin", "ol"}) {
      if (letters == word.size() && text.says(at, word)) best.offer(after);
    }
    if (letters == 1 && lower(first) == 'y' && is_letter(next)) best.offer(after, after + 1);
    if (letters == 3 && text.says(at, "cap") && lower(next) == 'n') best.offer(after + 1);
    if (letters == 1 && text.says(at, "c") && text.says(after, "est")) best.offer(after + 3);
  }
  const size_t rest = text.run(after, is_letter);
  // O'Brien, and the n'ts of "don'ts"; not I'm, not y'all.
  const bool opens_name = (is_upper(first) && first != 'I' && first != 'Y') || first == 'n';
  if (letters == 1 && opens_name && rest - after >= 2) best.offer(rest);
  // Shi'ite, Hawai'i
  if (letters >= 2 && is_one_of(lower(text[end - 1]), "aeiouy") &&
      (is_one_of(next, "aeiou") || is_upper(next))) {
    best.offer(rest);
  }
  for (const string_view word :
       {"cont'd.", "cont'd", "nor'easter", "c'mon", "e'er", "s'mores", "ev'ry", "li'l", "nat'l"}) {
    if (text.says(at, word)) best.offer(at + word.size());
  }
  if (letters == 1 && lower(first) == 'o' && lower(next) == 'o') best.offer(after + 1);
}

}  // namespace

size_t contraction_end(const Text& text, size_t i) {
  const size_t quote = text.apostrophe(i), after = i + quote;
  if (quote == 0) return i;
  if (is_one_of(lower(text[after]), "msd")) return after + 1;
  for (const string_view word : {"re", "ve", "ll"}) {
    if (text.says(after, word)) return after + word.size();
  }
  return i;
}

bool match_plain_word(const Text& text, size_t at, Match& best) {
  match_assimilation(text, at, best);
  const size_t end = text.run(at, is_ascii_letter);
  if (end == at || !is_blank(text[end])) return false;
  best.offer(end);
  return true;
}

void WordRules::match(const Text& text, size_t at, Match& best) {
  if (!is_digit(text[at]) && letter(text, at) == 0) return;
  const size_t end = word_end(text, at);
  if (end > at) {
    best.offer(end, contraction_end(text, end));
    match_negated(text, at, best);
    match_apostrophe_word(text, at, best);
  }
  match_special(text, at, best);
  best.offer(alternatives_end(text, at));
  if (text[text.run(at, is_upper)] == '$') best.offer(text.run(at, is_upper) + 1);  // "US$"
  if (end > at) offer_word(text, end, best);
  if (is_ascii_word(text[at])) {
    const auto is_head = [](char32_t c) { return is_piece(c) || c == '.' || c == ','; };
    offer_word(text, hyphenated_end(text, pieces_.end(text, at, is_head)), best);
  }
  offer_word(text, compound_end(text, at), best);
  offer_word(text, joined_capitals_end(text, at), best);
}

}  // namespace hdetach::tasks::ptb
