#include <algorithm>
#include <string_view>

#include "tasks/ptb/rules.h"

namespace hdetach::tasks::ptb {
namespace {

using std::string_view;

// 's, 'em, '90s, or a quote.
void match_apostrophe(const Text& text, size_t at, Match& best) {
  const size_t quote = text.apostrophe(at), after = at + quote;
  if (quote == 0) return;
  if (text.says(at, "'twas")) best.offer(at + 2, at + 5);
  if (text.says(after, "tis")) best.offer(after + 1, after + 3);
  if (lower(text[after]) == 'n') best.offer(after + 1 + text.apostrophe(after + 1));
  for (const string_view word : {"em", "till", "til", "cause"}) {
    if (text.says(after, word)) best.offer(after + word.size());
  }
  const bool two_digits = is_ascii_digit(text[after]) && is_ascii_digit(text[after + 1]);
  if (two_digits && text[after] >= '2' && text.says(after + 1, "0s")) best.offer(after + 3);
  const size_t contraction = contraction_end(text, at);
  if (!is_ascii_letter(text[contraction])) best.offer(contraction, contraction + 1);
  if (two_digits && is_blank(text[after + 2])) best.offer(after + 2, after + 3);
  // A quote that opens: a word of two letters or more follows.
  const bool more = !is_one_of(text[at + 2], " \t\n\r") && text[at + 2] != kNoBreakSpace;
  if (text[at] == '\'' && is_ascii_letter(text[at + 1]) && more) best.offer(at + 1, at + 3);
  best.offer(contraction);
  if (text.says(at, "''")) best.offer(at + 2);
  best.offer(after);
}

void match_quote(const Text& text, size_t at, Match& best) {
  const auto is_quote = [](char32_t c) { return c == '`' || kind(c) == Kind::kQuote; };
  if (is_quote(text[at])) best.offer(at + (is_quote(text[at + 1]) ? 2 : 1));
}

void match_entity(const Text& text, size_t at, Match& best) {
  if (text[at] != '&' || is_blank(text[at + 1])) return;
  for (const string_view name :
       {"&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&md;", "&mdash;", "&ndash;", "&ht;", "&tl;",
        "&ur;", "&lr;", "&qc;", "&ql;", "&qr;", "&odq;", "&cdq;"}) {
    if (text.says(at, name)) best.offer(at + name.size());
  }
  if (text[at + 1] == '#') {
    const size_t end = text.run(at + 2, is_ascii_digit);
    if (end > at + 2 && text[end] == ';') best.offer(end + 1);
  }
}

// :-) and its like, not before a word; (^_^) and its like.
void match_face(const Text& text, size_t at, Match& best) {
  const size_t eyes = is_one_of(text[at], "<>") ? at + 1 : at;
  if (is_one_of(text[eyes], ":;=")) {
    for (const size_t mouth : {eyes + 2, eyes + 1}) {
      if (mouth == eyes + 2 && !is_one_of(text[eyes + 1], "-o*'")) continue;
      if (is_one_of(text[mouth], "()DPdpO\\{@|[]") && !is_ascii_word(text[mouth + 1])) {
        best.offer(mouth + 1, mouth + 2);
      }
    }
  }
  const auto is_eye = [](char32_t c) { return is_one_of(c, "-^x=~<>'"); };
  if (is_eye(text[at]) && text[at + 1] == '_' && is_eye(text[at + 2])) best.offer(at + 3);
  if (text[at] != '(' || !is_eye(text[at + 1])) return;
  const size_t second = is_one_of(text[at + 2], "_.") ? at + 3 : at + 2;
  if (is_eye(text[second]) && text[second + 1] == ')') best.offer(second + 2);
  const bool ends = is_eye(text[at + 3]) || text[at + 3] == '`';
  if (text[at + 1] != '-' && text[at + 2] == '-' && ends && text[at + 4] == ')') {
    best.offer(at + 5);
  }
}

// Brackets that were spelled out before.
void match_bracket(const Text& text, size_t at, Match& best) {
  if (text[at] != '-') return;
  for (const string_view bracket : {"-lrb-", "-rrb-", "-lcb-", "-rcb-", "-lsb-", "-rsb-"}) {
    if (text.says(at, bracket)) best.offer(at + bracket.size());
  }
}

// Signs that stand together when they are repeated.
void match_repeated(const Text& text, size_t at, Match& best) {
  const char32_t c = text[at];
  if (c == '?' || c == '!') {
    best.offer(text.run(at, [](char32_t sign) { return sign == '?' || sign == '!'; }));
  } else if (is_one_of(c, "-=*@#_")) {
    best.offer(text.run(at, [c](char32_t sign) { return sign == c; }));
  } else if (c == '.') {
    size_t dots = 1;
    while (dots < 5 && text[at + dots] == '.') ++dots;
    best.offer(at + (dots >= 3 ? dots : 1));
  } else if (c == '\\') {
    size_t end = at;
    while (end < at + 6 && text[end] == '\\' && text[end + 1] == '*') end += 2;
    best.offer(end);
  } else if ((c == '<' || c == '>') && text[at + 1] == c) {
    best.offer(at + 2);
  }
}

}  // namespace

void match_sign(const Text& text, size_t at, Match& best) {
  match_apostrophe(text, at, best);
  match_quote(text, at, best);
  match_entity(text, at, best);
  match_face(text, at, best);
  match_bracket(text, at, best);
  match_repeated(text, at, best);
  if (kind(text[at]) != Kind::kUnknown) best.offer(at + 1);
}

}  // namespace hdetach::tasks::ptb
