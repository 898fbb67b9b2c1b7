#include "tasks/ptb/characters.h"

#include <algorithm>
#include <iterator>

namespace hdetach::tasks::ptb {
namespace {

struct Range {
  char32_t first, last;
  Kind kind;
};

// In order; what lies between is kUnknown.
constexpr Range kRanges[] = {
    {0x0080, 0x0080, Kind::kSymbol},     {0x0085, 0x0085, Kind::kSymbol},
    {0x0091, 0x0094, Kind::kQuote},      {0x0096, 0x0097, Kind::kSymbol},
    {0x00A0, 0x00A0, Kind::kSpace},      {0x00A1, 0x00A9, Kind::kSymbol},
    {0x00AA, 0x00AA, Kind::kLetter},     {0x00AB, 0x00AB, Kind::kQuote},
    {0x00AC, 0x00AC, Kind::kSymbol},     {0x00AD, 0x00AD, Kind::kLetter},
    {0x00AE, 0x00B1, Kind::kSymbol},     {0x00B2, 0x00B3, Kind::kSmallDigit},
    {0x00B4, 0x00B4, Kind::kSymbol},     {0x00B5, 0x00B5, Kind::kLetter},
    {0x00B6, 0x00B8, Kind::kSymbol},     {0x00B9, 0x00B9, Kind::kSmallDigit},
    {0x00BA, 0x00BA, Kind::kLetter},     {0x00BB, 0x00BB, Kind::kQuote},
    {0x00BC, 0x00BF, Kind::kSymbol},     {0x00C0, 0x00D6, Kind::kLetter},
    {0x00D7, 0x00D7, Kind::kSymbol},     {0x00D8, 0x00F6, Kind::kLetter},
    {0x00F7, 0x00F7, Kind::kSymbol},     {0x00F8, 0x037D, Kind::kLetter},
    {0x037E, 0x037E, Kind::kSymbol},     {0x0384, 0x0386, Kind::kLetter},
    {0x0387, 0x0387, Kind::kSymbol},     {0x0388, 0x0588, Kind::kLetter},
    {0x0589, 0x058A, Kind::kSymbol},     {0x0591, 0x05BD, Kind::kLetter},
    {0x05BE, 0x05BE, Kind::kSymbol},     {0x05BF, 0x05BF, Kind::kLetter},
    {0x05C0, 0x05C0, Kind::kSymbol},     {0x05C1, 0x05C2, Kind::kLetter},
    {0x05C3, 0x05C3, Kind::kSymbol},     {0x05C4, 0x05F2, Kind::kLetter},
    {0x05F3, 0x05F4, Kind::kSymbol},     {0x0600, 0x0614, Kind::kSymbol},
    {0x0615, 0x061A, Kind::kLetter},     {0x061B, 0x061F, Kind::kSymbol},
    {0x0621, 0x065E, Kind::kLetter},     {0x0660, 0x0669, Kind::kDigit},
    {0x066A, 0x066D, Kind::kSymbol},     {0x066E, 0x06D3, Kind::kLetter},
    {0x06D4, 0x06D4, Kind::kSymbol},     {0x06D5, 0x06EF, Kind::kLetter},
    {0x06F0, 0x06F9, Kind::kDigit},      {0x06FA, 0x06FF, Kind::kLetter},
    {0x0700, 0x070D, Kind::kSymbol},     {0x070F, 0x07B1, Kind::kLetter},
    {0x07C0, 0x07C9, Kind::kDigit},      {0x07CA, 0x07F5, Kind::kLetter},
    {0x07F6, 0x07F8, Kind::kSymbol},     {0x0900, 0x0963, Kind::kLetter},
    {0x0964, 0x0965, Kind::kSymbol},     {0x0966, 0x096F, Kind::kDigit},
    {0x0971, 0x0E3E, Kind::kLetter},     {0x0E3F, 0x0E3F, Kind::kSymbol},
    {0x0E40, 0x0E4E, Kind::kLetter},     {0x0E4F, 0x0E4F, Kind::kSymbol},
    {0x0E50, 0x0E59, Kind::kDigit},      {0x0E81, 0x1FFE, Kind::kLetter},
    {0x2000, 0x200A, Kind::kSpace},      {0x2010, 0x2011, Kind::kSymbol},
    {0x2013, 0x2017, Kind::kSymbol},     {0x2018, 0x201F, Kind::kQuote},
    {0x2020, 0x2023, Kind::kSymbol},     {0x2026, 0x2026, Kind::kSymbol},
    {0x2028, 0x2029, Kind::kNewline},    {0x2030, 0x2038, Kind::kSymbol},
    {0x2039, 0x203A, Kind::kQuote},      {0x203B, 0x203B, Kind::kSymbol},
    {0x203E, 0x2044, Kind::kSymbol},     {0x2070, 0x2070, Kind::kSmallDigit},
    {0x2071, 0x2071, Kind::kLetter},     {0x2074, 0x2079, Kind::kSmallDigit},
    {0x207A, 0x207E, Kind::kSymbol},     {0x207F, 0x207F, Kind::kLetter},
    {0x2080, 0x2089, Kind::kSmallDigit}, {0x208A, 0x208E, Kind::kSymbol},
    {0x20A0, 0x20A0, Kind::kSymbol},     {0x20A4, 0x20A4, Kind::kSymbol},
    {0x20AC, 0x20AC, Kind::kSymbol},     {0x2100, 0x215E, Kind::kSymbol},
    {0x2190, 0x2BFF, Kind::kSymbol},     {0x2C00, 0x2DFF, Kind::kLetter},
    {0x3000, 0x3000, Kind::kSpace},      {0x3001, 0x3002, Kind::kSymbol},
    {0x3005, 0x3007, Kind::kLetter},     {0x3012, 0x3012, Kind::kSymbol},
    {0x3021, 0x30FA, Kind::kLetter},     {0x30FB, 0x30FB, Kind::kSymbol},
    {0x30FC, 0xD7A3, Kind::kLetter},     {0xF900, 0xFDFB, Kind::kLetter},
    {0xFE70, 0xFEFC, Kind::kLetter},     {0xFF01, 0xFF0F, Kind::kSymbol},
    {0xFF10, 0xFF19, Kind::kDigit},      {0xFF1A, 0xFF20, Kind::kSymbol},
    {0xFF21, 0xFF3A, Kind::kLetter},     {0xFF3B, 0xFF40, Kind::kSymbol},
    {0xFF41, 0xFF5A, Kind::kLetter},     {0xFF5B, 0xFF65, Kind::kSymbol},
    {0xFF66, 0xFFDC, Kind::kLetter},     {0xFFE0, 0xFFE1, Kind::kSymbol},
    {0xFFE5, 0xFFE6, Kind::kSymbol},
};

// Capitals whose small letter is `offset` further on: all of them, or every second one.
struct Capitals {
  char32_t first, last;
  int offset;
  bool alternate;
};

constexpr Capitals kCapitals[] = {
    {0x00C0, 0x00D6, 32, false},   {0x00D8, 0x00DE, 32, false}, {0x0100, 0x012E, 1, true},
    {0x0132, 0x0136, 1, true},     {0x0139, 0x0147, 1, true},   {0x014A, 0x0176, 1, true},
    {0x0178, 0x0178, -121, false}, {0x0179, 0x017D, 1, true},   {0x01CD, 0x01DB, 1, true},
    {0x01DE, 0x01EE, 1, true},     {0x01F8, 0x021E, 1, true},   {0x0222, 0x0232, 1, true},
    {0x0386, 0x0386, 38, false},   {0x0388, 0x038A, 37, false}, {0x038C, 0x038C, 64, false},
    {0x038E, 0x038F, 63, false},   {0x0391, 0x03A1, 32, false}, {0x03A3, 0x03AB, 32, false},
    {0x0400, 0x040F, 80, false},   {0x0410, 0x042F, 32, false}, {0x0460, 0x0480, 1, true},
    {0x048A, 0x04BE, 1, true},     {0x04C1, 0x04CD, 1, true},   {0x04D0, 0x0522, 1, true},
    {0x0531, 0x0556, 48, false},   {0x1E00, 0x1E94, 1, true},   {0x1EA0, 0x1EFE, 1, true},
    {0xFF21, 0xFF3A, 32, false},
};

// The length of the sequence that a byte opens, 0 where it opens none.
int sequence_length(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte < 0xE0) return 2;
  if (byte >= 0xE0 && byte < 0xF0) return 3;
  return byte >= 0xF0 && byte < 0xF5 ? 4 : 0;
}

}  // namespace

Kind kind_beyond_ascii(char32_t c) {
  const Range* range = std::upper_bound(
      std::begin(kRanges), std::end(kRanges), c,
      [](char32_t character, const Range& candidate) { return character < candidate.first; });
  if (range == std::begin(kRanges) || c > std::prev(range)->last) return Kind::kUnknown;
  return std::prev(range)->kind;
}

char32_t lower_beyond_ascii(char32_t c) {
  for (const Capitals& capitals : kCapitals) {
    if (c < capitals.first || c > capitals.last) continue;
    if (capitals.alternate && (c - capitals.first) % 2 != 0) continue;
    return static_cast<char32_t>(static_cast<int>(c) + capitals.offset);
  }
  return c;
}

std::u32string decode(std::string_view utf8) {
  std::u32string text;
  text.reserve(utf8.size());
  for (size_t i = 0; i < utf8.size();) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    const int length = sequence_length(byte);
    char32_t c = length == 1 ? byte : byte & (0x7F >> std::max(length, 1));
    int read = 1;
    while (read < length && i + read < utf8.size() && (utf8[i + read] & 0xC0) == 0x80) {
      c = c << 6 | (static_cast<unsigned char>(utf8[i + read]) & 0x3F);
      ++read;
    }
    const bool whole = length > 0 && read == length;
    text += whole ? c : kNotUtf8;
    i += whole ? length : 1;
  }
  return text;
}

void append(char32_t c, std::string& utf8) {
  if (c < 0x80) {
    utf8 += static_cast<char>(c);
  } else if (c < 0x800) {
    utf8 += static_cast<char>(0xC0 | c >> 6);
    utf8 += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    if (c < 0x10000) {
      utf8 += static_cast<char>(0xE0 | c >> 12);
    } else {
      utf8 += static_cast<char>(0xF0 | c >> 18);
      utf8 += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    utf8 += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    utf8 += static_cast<char>(0x80 | (c & 0x3F));
  }
}

}  // namespace hdetach::tasks::ptb
