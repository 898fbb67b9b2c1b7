#include "tasks/meteor/normalize.h"

#include <algorithm>
#include <vector>

namespace hdetach::meteor {
namespace {

using Text = std::u32string;  // METEOR's rules speak of characters, not of bytes
using View = std::u32string_view;

constexpr char32_t kUnreadable = 0xFFFD;

// Bytes that are no UTF-8 become the character that Java reads them as.
Text decode(std::string_view bytes) {
  Text text;
  text.reserve(bytes.size() + 2);
  for (size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[i++]);
    const int more = first < 0x80 ? 0 : first < 0xC2 ? -1 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    char32_t c = more <= 0 ? first : first & (0x3F >> more);
    bool whole = more >= 0 && first < 0xF5;
    for (int k = 0; whole && k < more; ++k) {
      whole = i < bytes.size() && (static_cast<unsigned char>(bytes[i]) & 0xC0) == 0x80;
      if (whole) c = c << 6 | (static_cast<unsigned char>(bytes[i++]) & 0x3F);
    }
    text += whole ? c : kUnreadable;
  }
  return text;
}

void encode(char32_t c, std::string& bytes) {
  if (c < 0x80) {
    bytes += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  bytes += static_cast<char>((0xFF00 >> (more + 1) & 0xFF) | c >> (6 * more));
  for (int k = more - 1; k >= 0; --k) bytes += static_cast<char>(0x80 | (c >> (6 * k) & 0x3F));
}

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_lower(char32_t c) { return c >= U'a' && c <= U'z'; }

// The Latin and Cyrillic letters that METEOR counts as such.
bool is_letter(char32_t c) {
  if (c < 0x80) return is_lower(c) || (c >= U'A' && c <= U'Z');
  return (c >= 0xC0 && c <= 0x17E && c != 0xD7 && c != 0xF7) || (c >= 0x400 && c <= 0x527) ||
         (c >= 0xA640 && c <= 0xA66E) || (c >= 0xA67E && c <= 0xA697) ||
         (c >= 0x1D00 && c <= 0x1D7F);
}
bool is_letter_or_digit(char32_t c) { return is_digit(c) || is_letter(c); }

bool is_blank(char32_t c) { return c == U' ' || (c >= U'\t' && c <= U'\r'); }

// Blanks outside ASCII stand alone like a symbol and vanish only in the end.
bool is_wide_blank(char32_t c) {
  return c == 0xA0 || c == 0x1680 || c == 0x180E || (c >= 0x2000 && c <= 0x200A) || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// Replaces `middle` by `put` where both its neighbours are as asked. A neighbour serves one match
// only, as in a regular expression that takes in both: a-b-c becomes a b-c.
template <typename Before, typename After>
void replace_between(Text& text, Before before, char32_t middle, After after, View put) {
  if (text.find(middle) == Text::npos) return;
  Text out;
  out.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size();) {
    out += text[i];
    if (i + 2 < text.size() && text[i + 1] == middle && before(text[i]) && after(text[i + 2])) {
      out.append(put).append(1, text[i + 2]);
      i += 3;
    } else {
      ++i;
    }
  }
  text = std::move(out);
}

// Symbols alone, and runs of dots; a single dot stays where it is.
Text separate(const Text& text) {
  const View inside = U".'`,-\u2018\u2019";
  Text out = U" ";
  out.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size();) {
    const char32_t c = text[i];
    const size_t dots = std::min(text.find_first_not_of(U'.', i), text.size()) - i;
    if (dots > 1) {
      out.append(1, U' ').append(dots, U'.').append(1, U' ');
    } else if (is_letter_or_digit(c) || is_blank(c) || inside.find(c) != View::npos) {
      out += c;
    } else {
      out.append(1, U' ').append(1, c).append(1, U' ');
    }
    i += std::max<size_t>(dots, 1);
  }
  return out += U' ';
}

void split_commas(Text& text) {
  const auto other = [](char32_t c) { return !is_digit(c); };
  replace_between(text, other, U',', other, U" , ");
  replace_between(text, is_digit, U',', other, U" , ");
  replace_between(text, other, U',', is_digit, U" , ");
}

// Every single quote becomes ', every double one ".
Text unify_quotes(const Text& text) {
  const auto is_single = [](char32_t c) {
    return c == U'\'' || c == U'`' || c == 0x2018 || c == 0x2019;
  };
  Text out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool twice = is_single(text[i]) && i + 1 < text.size() && is_single(text[i + 1]);
    if (twice || text[i] == 0x201C || text[i] == 0x201D) {
      out += U" \" ";
      i += twice;
    } else {
      out += is_single(text[i]) ? U'\'' : text[i];
    }
  }
  return out;
}

void split_dashes(Text& text) {
  std::replace(text.begin(), text.end(), char32_t{0x2013}, U'-');
  Text out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == U'-' && i + 1 < text.size() && text[i + 1] == U'-') ++i;  // two are one
  }
  text = std::move(out);
  const auto before = [](char32_t c) { return c == U'.' || is_letter_or_digit(c); };
  replace_between(text, before, U'-', is_letter_or_digit, U" ");
}

void split_contractions(Text& text) {
  const auto other = [](char32_t c) { return !is_letter(c); };
  const auto symbol = [](char32_t c) { return !is_letter_or_digit(c); };
  replace_between(text, other, U'\'', other, U" ' ");
  replace_between(text, symbol, U'\'', is_letter, U" ' ");
  replace_between(text, is_letter, U'\'', other, U" ' ");
  replace_between(text, is_letter, U'\'', is_letter, U" '");
  replace_between(
      text, is_digit, U'\'', [](char32_t c) { return c == U's'; }, U" '");  // the 1990's
}

std::vector<View> split_words(View text) {
  std::vector<View> words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && !is_blank(text[end])) ++end;
    if (end > i) words.push_back(text.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

// What becomes of a word that ends in a dot.
Text split_dot(View word, View next) {
  const View stem = word.substr(0, word.size() - 1);
  const char32_t follows = next.empty() ? U' ' : next[0];
  if (stem.find(U'.') != View::npos && std::any_of(stem.begin(), stem.end(), is_letter)) {
    Text undotted(word);  // u.s. is us
    undotted.erase(std::remove(undotted.begin(), undotted.end(), U'.'), undotted.end());
    return undotted;
  }
  // Of METEOR's abbreviations only these are in lower case.
  const bool abbreviation = stem == U"v" || stem == U"vs" || stem == U"rev";
  if (abbreviation || is_lower(follows) || (stem == U"pp" && is_digit(follows))) return Text(word);
  return Text(stem) + U" .";
}

bool is_plain(std::string_view caption) {
  return std::all_of(caption.begin(), caption.end(), [](char c) {
    return c == ' ' || is_lower(static_cast<unsigned char>(c)) ||
           is_digit(static_cast<unsigned char>(c));
  });
}

}  // namespace

std::string normalize(std::string_view caption) {
  if (is_plain(caption)) return std::string(caption);
  Text text = separate(decode(caption));
  split_commas(text);
  text = unify_quotes(text);
  split_dashes(text);
  split_contractions(text);
  const std::vector<View> words = split_words(text);
  std::string line;
  for (size_t i = 0; i < words.size(); ++i) {
    const View word = words[i];
    if (word.size() == 1 && is_wide_blank(word[0])) continue;
    const bool dotted = word.back() == U'.' && word.find_first_not_of(U'.') != View::npos;
    if (!line.empty()) line += ' ';
    const View next = i + 1 < words.size() ? words[i + 1] : View();
    for (const char32_t c : dotted ? split_dot(word, next) : Text(word)) {
      encode(c >= U'A' && c <= U'Z' ? c + 32 : c, line);
    }
  }
  return line;
}

}  // namespace hdetach::meteor
