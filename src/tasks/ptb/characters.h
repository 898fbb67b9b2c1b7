// What the tokeniser knows of characters. The kinds are those of the original's rules, for the
// characters of Unicode's first plane; the scripts beyond Latin, Greek and Cyrillic are drawn with
// a broad brush.
#pragma once

#include <string>
#include <string_view>

namespace hdetach::tasks::ptb {

enum class Kind : unsigned char {
  kUnknown,  // left out; it ends a word
  kSpace,
  kNewline,
  kLetter,  // and marks that stand on or within words, such as the soft hyphen
  kDigit,
  kSmallDigit,  // superscripts and subscripts
  kQuote,
  kSymbol,  // a token of its own, ASCII punctuation included
};

constexpr char32_t kSoftHyphen = 0x00AD;
constexpr char32_t kNoBreakSpace = 0x00A0;
constexpr char32_t kNotUtf8 = 0xFFFD;  // a kUnknown

constexpr bool is_lower(char32_t c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char32_t c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_ascii_letter(char32_t c) { return is_lower(c) || is_upper(c); }
constexpr bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }
constexpr bool is_ascii_word(char32_t c) { return is_ascii_letter(c) || is_ascii_digit(c); }
constexpr bool is_one_of(char32_t c, std::string_view ascii) {
  return c != 0 && c < 128 && ascii.find(static_cast<char>(c)) != std::string_view::npos;
}

Kind kind_beyond_ascii(char32_t c);
inline Kind kind(char32_t c) {
  if (c >= 128) return kind_beyond_ascii(c);
  if (is_ascii_letter(c)) return Kind::kLetter;
  if (is_ascii_digit(c)) return Kind::kDigit;
  if (c > ' ') return c < 127 ? Kind::kSymbol : Kind::kUnknown;
  if (c == ' ' || c == '\t') return Kind::kSpace;
  return c >= '\n' && c <= '\r' ? Kind::kNewline : Kind::kUnknown;
}

inline bool is_letter(char32_t c) { return kind(c) == Kind::kLetter; }
inline bool is_digit(char32_t c) { return kind(c) == Kind::kDigit; }
inline bool is_space(char32_t c) { return kind(c) == Kind::kSpace; }
inline bool is_blank(char32_t c) { return is_space(c) || kind(c) == Kind::kNewline; }
inline bool is_word(char32_t c) { return is_letter(c) || is_digit(c); }

char32_t lower_beyond_ascii(char32_t c);
inline char32_t lower(char32_t c) {
  if (c >= 128) return lower_beyond_ascii(c);
  return is_upper(c) ? c + 32 : c;
}

std::u32string decode(std::string_view utf8);
void append(char32_t c, std::string& utf8);

}  // namespace hdetach::tasks::ptb
