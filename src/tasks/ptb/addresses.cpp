#include <string_view>

#include "tasks/ptb/rules.h"

namespace hdetach::tasks::ptb {
namespace {

using std::string_view;

constexpr string_view kBreaks = " \t\n\f\r\"<>|()";  // end an address

bool is_unbroken(char32_t c) { return !is_one_of(c, kBreaks) && !is_one_of(c, "{}"); }
bool is_path(char32_t c) { return !is_one_of(c, kBreaks); }
// In the name of a site behind "www.".
bool is_site(char32_t c) { return is_unbroken(c) && !is_one_of(c, ".!?,"); }
// In a name before ".com": the original's list of what may not stand there has a range, from the
// comma to the underscore, which takes out digits and capitals.
bool is_name(char32_t c) { return is_site(c) && !is_one_of(c, "`'$") && (c < ',' || c > '_'); }
bool is_identifier(char32_t c) { return is_ascii_word(c) || c == '_'; }

// [begin, end) without the signs at its end that belong to the sentence.
size_t without_tail(const Text& text, size_t begin, size_t end, string_view signs) {
  while (end > begin && is_one_of(text[end - 1], signs)) --end;
  return end;
}

// An address and the path behind it.
void offer_page(const Text& text, size_t end, Match& best) {
  best.offer(end);
  if (text[end] != '/') return;
  const size_t path = without_tail(text, end + 1, text.run(end + 1, is_path), ".!?(){},-");
  if (path >= end + 3) best.offer(path);
}

bool is_domain(const Text& text, size_t i) {
  return text.says(i, "com") || text.says(i, "net") || text.says(i, "org") || text.says(i, "edu");
}

// "www." and names; the last needs only two to four letters. The first that has a path reaches as
// far as any.
void match_www(const Text& text, size_t at, Match& best) {
  if (!text.says(at, "www.")) return;
  size_t i = at + 4;
  for (;;) {
    const size_t dot = text.run(i, is_site);
    if (dot == i || text[dot] != '.') return;
    i = dot + 1;
    size_t letters = 0;
    while (letters < 4 && is_ascii_letter(text[i + letters])) ++letters;
    if (letters < 2) continue;
    offer_page(text, i + letters, best);
    if (text[i + letters] == '/') return;
  }
}

// <name attribute attribute="value">, in one line. The length of the tag's content is bounded by
// the next tag, so that no part of a text is read again and again.
size_t tag_name_end(const Text& text, size_t i) {
  if (!is_ascii_letter(text[i])) return i;
  return text.run(i, [](char32_t c) { return is_identifier(c) || is_one_of(c, ":.-"); });
}

size_t spaces_end(const Text& text, size_t i) {
  return text.run(i, [](char32_t c) { return c == ' '; });
}

size_t attribute_end(const Text& text, size_t i) {
  const size_t name = tag_name_end(text, i);
  if (name == i) return i;
  const size_t equals = spaces_end(text, name);
  if (text[equals] != '=') return name;
  const size_t value = spaces_end(text, equals + 1);
  const char32_t quote = text[value];
  if (quote != '\'' && quote != '"') return tag_name_end(text, value);
  const size_t close =
      text.run(value + 1, [quote](char32_t c) { return c != quote && c != '\n' && c != '\r'; });
  return text[close] == quote ? close + 1 : name;
}

}  // namespace

void AddressRules::match_page(const Text& text, size_t at, Match& best) {
  if (text.says(at, "http://") || text.says(at, "https://")) {
    const size_t begin = at + (text[at + 4] == ':' ? 7 : 8);
    const size_t end = without_tail(text, begin, text.run(begin, is_unbroken), ".!?,-");
    if (end >= begin + 2) best.offer(end);
  }
  match_www(text, at, best);
  if (!is_name(text[at])) return;
  if (at < names_begin_ || at >= names_end_) {
    names_begin_ = at;
    names_end_ = text.run(at, is_name);
    domain_dot_ = domain_end_ = 0;
    while (text[names_end_] == '.') {
      if (is_domain(text, names_end_ + 1)) {
        domain_dot_ = names_end_;
        domain_end_ = names_end_ + 4;
      }
      const size_t next = text.run(names_end_ + 1, is_name);
      if (next == names_end_ + 1) break;
      names_end_ = next;
    }
  }
  if (domain_dot_ > at) offer_page(text, domain_end_, best);
}

void AddressRules::match_person(const Text& text, size_t at, Match& best) {
  const size_t begin = at + (text[at] == '<' ? 1 : text.says(at, "&lt;") ? 4 : 0);
  if (!is_ascii_word(text[begin])) return;
  if (begin < unbroken_begin_ || begin >= unbroken_end_) {
    unbroken_begin_ = begin;
    unbroken_end_ =
        text.run(begin, [](char32_t c) { return is_unbroken(c) && c != kNoBreakSpace; });
    last_at_sign_ = unbroken_end_;
    while (last_at_sign_ > begin && text[last_at_sign_] != '@') --last_at_sign_;
  }
  if (last_at_sign_ <= begin) return;
  // Names with single full stops between.
  size_t end = last_at_sign_ + 1;
  while (end < unbroken_end_ && (text[end] != '.' || text[end - 1] != '.')) ++end;
  end = without_tail(text, last_at_sign_ + 1, end, ".");
  if (end == last_at_sign_ + 1 || text[last_at_sign_ + 1] == '.') return;
  best.offer(text[end] == '>' ? end + 1 : end);
}

void AddressRules::match_tag(const Text& text, size_t at, Match& best) {
  const char32_t first = text[at + 1];
  if (first == '!' || first == '?') {
    if (!is_ascii_letter(text[at + 2]) && text[at + 2] != '-') return;
    const size_t end =
        declaration_.end(text, at, [](char32_t c) { return c != '>' && c != '\n' && c != '\r'; });
    if (text[end] == '>' && end > at + 2) best.offer(end + 1);
    return;
  }
  size_t end = tag_name_end(text, at + (first == '/' ? 2 : 1));
  if (end == at + (first == '/' ? 2 : 1)) return;
  while (first != '/' && text[end] == ' ') {
    const size_t begin = spaces_end(text, end), next = attribute_end(text, begin);
    if (next == begin) break;
    end = next;
  }
  end = spaces_end(text, end);
  if (first != '/' && text[end] == '/') end = spaces_end(text, end + 1);
  if (text[end] == '>') best.offer(end + 1);
}

void AddressRules::match(const Text& text, size_t at, Match& best) {
  const char32_t c = text[at];
  if (c == '<') match_tag(text, at, best);
  match_page(text, at, best);
  match_person(text, at, best);
  if (c == '@' && is_identifier(text[at + 1]) && !is_ascii_digit(text[at + 1])) {
    best.offer(text.run(at + 1, is_identifier));
  }
  if (c == '#' && is_letter(text[at + 1])) best.offer(text.run(at + 1, is_letter));
}

}  // namespace hdetach::tasks::ptb
