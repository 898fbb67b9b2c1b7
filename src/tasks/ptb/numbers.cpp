#include <algorithm>

#include "tasks/ptb/rules.h"

namespace hdetach::tasks::ptb {
namespace {

bool is_number_sign(char32_t c) {
  return is_one_of(c, ".:,") || c == kSoftHyphen || c == 0x066B || c == 0x066C;
}
bool is_gap(char32_t c) { return is_one_of(c, "- ") || c == kNoBreakSpace; }
bool is_superscript(char32_t c) {
  return kind(c) == Kind::kSmallDigit && (c < 0x2080 || c > 0x2089);
}
bool is_subscript(char32_t c) { return c >= 0x2080 && c <= 0x2089; }

// How many digits stand at i, at most `most`; 0 where there are less than `least`.
size_t digits(const Text& text, size_t i, size_t least, size_t most) {
  size_t count = 0;
  while (count < most && is_digit(text[i + count])) ++count;
  return count < least ? 0 : count;
}

// 5, 1,000.5, 12:30, .5
size_t number_end(const Text& text, size_t i) {
  size_t end = text.run(i, is_digit);
  while (is_number_sign(text[end]) && is_digit(text[end + 1])) end = text.run(end + 1, is_digit);
  return end;
}

// 5/12/2014; 0 where there is none.
size_t date_end(const Text& text, size_t i) {
  for (int part = 0; part < 2; ++part) {
    const size_t count = digits(text, i, 1, 2);
    if (count == 0 || !is_one_of(text[i + count], "-/")) return 0;
    i += count + 1;
  }
  const size_t year = digits(text, i, 2, 4);
  return year > 0 ? i + year : 0;
}

// 1/2; 0 where there is none.
size_t fraction_end(const Text& text, size_t i) {
  const size_t above = digits(text, i, 1, 4);
  if (above == 0) return 0;
  i += above;
  if (text[i] == '\\' && text[i + 1] == '/') ++i;
  if (text[i] != '/' && text[i] != 0x2044) return 0;
  const size_t below = digits(text, i + 1, 1, 4);
  return below > 0 ? i + 1 + below : 0;
}

// The last seven to nine digits of a telephone number, in one or two groups.
size_t local_number_end(const Text& text, size_t i) {
  size_t end = 0;
  for (size_t first = digits(text, i, 3, 4); first >= 3; --first) {
    const size_t second = i + first + (is_gap(text[i + first]) ? 1 : 0);
    const size_t count = digits(text, second, 3, 5);
    if (count > 0) end = std::max(end, second + count);
  }
  return end;
}

// A group of two to four digits and what parts it from the next; 0 where there is none.
template <class Is>
size_t group_end(const Text& text, size_t i, const Is& is_parting) {
  const size_t count = digits(text, i, 2, 4);
  return count > 0 && is_parting(text[i + count]) ? i + count + 1 : 0;
}

// +1 555 123-4567, (555) 123 4567, 555.123.4567
void match_telephone(const Text& text, size_t at, Match& best) {
  if (text[at] == '(') {
    const size_t close = at + 1 + digits(text, at + 1, 2, 3);
    if (close == at + 1 || text[close] != ')') return;
    const size_t gap = is_gap(text[close + 1]) && text[close + 1] != '-' ? 1 : 0;
    best.offer(local_number_end(text, close + 1 + gap));
    return;
  }
  size_t begin = at;
  while (begin < at + 2 && text[begin] == '+') ++begin;
  const auto is_dot = [](char32_t c) { return c == '.'; };
  if (const size_t first = group_end(text, begin, is_gap); first > 0) {
    best.offer(local_number_end(text, first));
    const size_t second = group_end(text, first, is_gap);
    if (second > 0) best.offer(local_number_end(text, second));
  }
  size_t i = group_end(text, begin, is_dot);
  for (int group = 0; i > 0 && group < 2; ++group) {
    const size_t middle = digits(text, i, 3, 4);
    const size_t last = middle > 0 && text[i + middle] == '.' ? i + middle + 1 : 0;
    if (last > 0 && digits(text, last, 3, 5) > 0) best.offer(last + digits(text, last, 3, 5));
    i = group_end(text, i, is_dot);
  }
}

}  // namespace

void match_number(const Text& text, size_t at, Match& best) {
  const char32_t c = text[at];
  best.offer(date_end(text, at));
  const size_t begin = is_one_of(c, "+-") ? at + 1 : at;
  if (const size_t end = number_end(text, begin); end > begin) best.offer(end);
  // A sign may stand before small digits too.
  const size_t small = (c == 0x207A || c == 0x207B || c == 0x208A || c == 0x208B) ? at + 1 : at;
  const size_t above = text.run(small, is_superscript), below = text.run(small, is_subscript);
  if (std::max(above, below) > small) best.offer(std::max(above, below));
  best.offer(fraction_end(text, at));
  if (const size_t whole = digits(text, at, 1, 4); whole > 0 && is_gap(text[at + whole])) {
    best.offer(fraction_end(text, at + whole + 1));  // 5 1/2
  }
  match_telephone(text, at, best);
}

}  // namespace hdetach::tasks::ptb
