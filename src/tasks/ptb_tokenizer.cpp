// The original is a lexer made from some seventy patterns: at each place the pattern that reads the
// furthest gives the token. Here the patterns are functions, grouped in tasks/ptb/. The defaults of
// the original hold: brackets become -LRB- and the like, quotes TeX's, dashes --, pounds #, British
// spelling stays. Version 3.4.1 of its patterns is not at hand; where the versions before and after
// differ, the rules follow the one nearest to it.
#include "tasks/ptb_tokenizer.h"

#include <algorithm>
#include <iterator>

#include "tasks/ptb/rules.h"

namespace hdetach::tasks {
namespace {

using namespace ptb;
using std::string_view;

// What coco-caption leaves out. It means to leave out brackets too, but looks for -LRB- after the
// tokens were put in lower case: -lrb- stays among the words, and counts.
bool is_punctuation(string_view token) {
  constexpr string_view kPunctuation[] = {"",  "''", "'", "``", "`",  ".",   "?",
                                          "!", ",",  ":", "-",  "--", "...", ";"};
  return std::find(std::begin(kPunctuation), std::end(kPunctuation), token) !=
         std::end(kPunctuation);
}

// What a character becomes; null for those that stay.
const char* spelling(char32_t c) {
  switch (c) {
    case ' ':
      return "\u00A0";  // within a token, as in "5 1/2"
    case '(':
      return "-lrb-";
    case ')':
      return "-rrb-";
    case '"':
      return "''";
    case kSoftHyphen:
      return "";
    case 0x0085:
    case 0x2026:
      return "...";
    case 0x0091:
    case 0x2018:
    case 0x201B:
    case 0x2039:
      return "`";
    case 0x0092:
    case 0x2019:
    case 0x203A:
      return "'";
    case 0x0093:
    case 0x201C:
    case 0x00AB:
      return "``";
    case 0x0094:
    case 0x201D:
    case 0x00BB:
      return "''";
    case 0x0096:
    case 0x0097:
    case 0x2013:
    case 0x2014:
    case 0x2015:
      return "--";
    case 0x00A2:
      return "cents";
    case 0x00A3:
      return "#";
    case 0x0080:
    case 0x00A4:
    case 0x20A0:
    case 0x20AC:
      return "$";
    case 0x00BC:
      return "1/4";
    case 0x00BD:
      return "1/2";
    case 0x00BE:
      return "3/4";
    case 0x2153:
      return "1/3";
    case 0x2154:
      return "2/3";
    default:
      return nullptr;
  }
}

// Brackets that keep their form within a face or an address.
const char* bracket(char32_t c) {
  switch (c) {
    case '[':
      return "-lsb-";
    case ']':
      return "-rsb-";
    case '{':
      return "-lcb-";
    case '}':
      return "-rcb-";
    default:
      return nullptr;
  }
}

struct Entity {
  string_view name;
  string_view text;
};
constexpr Entity kEntities[] = {{"&amp;", "&"},    {"&lt;", "<"},     {"&gt;", ">"},
                                {"&apos;", "'"},   {"&quot;", "''"},  {"&nbsp;", ""},
                                {"&mdash;", "--"}, {"&ndash;", "--"}, {"&md;", "--"}};

// Adds the token in [begin, end) and a space, unless it is punctuation.
void append_token(const Text& text, size_t begin, size_t end, std::string& words) {
  const size_t before = words.size();
  const char32_t first = text[begin];
  size_t same = begin;
  while (same < end && text[same] == first) ++same;
  const bool repeated = same == end && end - begin >= 3;
  if (repeated && first == '.') return;
  if (repeated && first == '-' && end - begin <= 4) return;  // a dash
  for (size_t i = begin; i < end;) {
    const char32_t c = text[i];
    const Entity* entity = std::end(kEntities);
    if (c == '&') {
      entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                            [&](const Entity& e) { return text.says(i, e.name); });
    }
    if (entity != std::end(kEntities)) {
      words += entity->text;
      i += entity->name.size();
      continue;
    }
    const char* other = end - begin == 1 ? bracket(c) : nullptr;
    if (other == nullptr) other = spelling(c);
    if (other != nullptr) {
      words += other;
    } else {
      append(lower(c), words);
    }
    ++i;
  }
  if (is_punctuation(string_view(words).substr(before))) {
    words.resize(before);
  } else {
    words += ' ';
  }
}

}  // namespace

std::string ptb_tokenize(string_view caption) {
  const Text text(caption);
  WordRules words;
  AddressRules addresses;
  std::string tokens;
  tokens.reserve(caption.size() + caption.size() / 8);
  for (size_t at = 0; at < text.size();) {
    const char32_t c = text[at];
    if (is_blank(c) || kind(c) == Kind::kUnknown) {
      ++at;
      continue;
    }
    Match best{at, at};
    if (!match_plain_word(text, at, best)) {
      words.match(text, at, best);
      if (is_ascii_letter(c)) match_abbreviation(text, at, best);
      if (!is_letter(c)) match_number(text, at, best);
      addresses.match(text, at, best);
      if (!is_word(c)) match_sign(text, at, best);
    }
    if (best.end > at) append_token(text, at, best.end, tokens);
    at = std::max(best.end, at + 1);
  }
  if (!tokens.empty()) tokens.pop_back();
  return tokens;
}

}  // namespace hdetach::tasks
