#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "tasks/ptb/rules.h"

namespace hdetach::tasks::ptb {
namespace {

using std::string_view;

// Lists are in the order of the alphabet.
// Months, days, states, companies and the like: a small letter follows them, or the sentence ends.
constexpr string_view kBeforeSmall[] = {
    "al",    "ala",   "apr",  "ariz", "assn", "aug",  "bancorp", "bhd",  "bldg", "blvd", "bros",
    "calif", "co",    "colo", "conn", "corp", "cos",  "ct",      "dak",  "dec",  "esq",  "est",
    "etc",   "ext",   "feb",  "fla",  "fri",  "ga",   "inc",     "ind",  "intl", "jan",  "jr",
    "jul",   "jun",   "kan",  "kans", "ky",   "ltd",  "mar",     "md",   "mich", "minn", "mo",
    "mon",   "mont",  "neb",  "nev",  "nov",  "oct",  "okla",    "penn", "plc",  "ppte", "pptes",
    "ppty",  "pptys", "pte",  "ptes", "pty",  "ptys", "rd",      "rt",   "sep",  "sept", "seq",
    "sq",    "sr",    "sys",  "tel",  "tenn", "thu",  "thurs",   "tue",  "tues", "univ", "va",
    "vt",    "wed",   "wis",  "wisc", "wyo"};
// States that are words when they start with a small letter.
constexpr string_view kCapitalBeforeSmall[] = {"ark",  "az",  "del", "ill", "la",  "mass",
                                               "miss", "ore", "pa",  "tex", "wash"};
// Titles and others that a name follows.
constexpr string_view kBeforeName[] = {
    "adj",  "adm",    "adv",  "alex", "assoc", "asst",  "atty", "attys", "ave",   "brig",  "capt",
    "cf",   "cie",    "cmdr", "col",  "comdr", "cpl",   "dept", "det",   "dr",    "drs",   "elec",
    "ens",  "ft",     "gen",  "gov",  "govs",  "hon",   "insp", "invt",  "jos",   "lieut", "lt",
    "maj",  "messrs", "mfg",  "mlle", "mme",   "mr",    "mrs",  "ms",    "msgr",  "mt",    "mtg",
    "natl", "pfc",    "ph",   "pres", "prof",  "profs", "pvt",  "rep",   "reps",  "rev",   "sen",
    "sens", "sfc",    "sgt",  "spc",  "st",    "ste",   "supt", "supts", "treas", "vs",    "wm"};
constexpr string_view kBeforeNumber[] = {"art", "bldg", "ca", "fig", "figs",
                                         "no",  "nos",  "op", "pp",  "prop"};
// After "U.S." or "plan B." one of these starts a sentence.
constexpr string_view kSentenceOpeners[] = {
    "a",       "about", "according", "additionally", "after",   "an",    "as",    "at",    "but",
    "earlier", "he",    "her",       "here",         "however", "if",    "in",    "it",    "last",
    "many",    "more",  "now",       "once",         "one",     "other", "our",   "she",   "since",
    "so",      "some",  "such",      "that",         "the",     "then",  "there", "these", "they",
    "this",    "we",    "what",      "when",         "while",   "yet",   "you"};

constexpr size_t kLongest = 12;  // letters of a word in these lists

template <size_t N>
bool holds(const string_view (&list)[N], const std::string& word) {
  return std::binary_search(std::begin(list), std::end(list), string_view(word));
}

// The letters at i in lower case, empty where they are too many.
std::string short_word(const Text& text, size_t i) {
  std::string word;
  while (is_ascii_letter(text[i])) {
    if (word.size() == kLongest) return "";
    word += static_cast<char>(lower(text[i++]));
  }
  return word;
}

// Past the full stop of "b." or "U.S."; 0 where there is none.
size_t acronym_end(const Text& text, size_t i) {
  size_t end = 0;
  while (is_ascii_letter(text[i]) && text[i + 1] == '.') end = i += 2;
  return end;
}

// The end of the first word of a sentence and of the blank behind it; 0 where none starts.
size_t opener_end(const Text& text, size_t i) {
  size_t begin = i;
  while (is_blank(text[begin])) ++begin;
  if (begin == i || !is_upper(text[begin])) return 0;
  const std::string word = short_word(text, begin);
  const bool title = (word == "mr" || word == "ms") && text[begin + 2] == '.';
  const size_t end = begin + word.size() + (title ? 1 : 0);
  return (title || holds(kSentenceOpeners, word)) && is_blank(text[end]) ? end + 1 : 0;
}

}  // namespace

void match_abbreviation(const Text& text, size_t at, Match& best) {
  if (const size_t end = acronym_end(text, at); end > 0) {
    // A letter alone, as in "plan B. The", gives its full stop to the sentence.
    best.offer(end == at + 2 ? at + 1 : end, opener_end(text, end));
    best.offer(end);
  }
  if (text.says(at, "ph.d.") || text.says(at, "ed.d.")) best.offer(at + 5, at + 7);
  const std::string word = short_word(text, at);
  const size_t end = at + word.size() + 1;
  if (word.empty() || text[end - 1] != '.') return;
  const size_t number = is_blank(text[end]) ? end + 1 : end;
  if (holds(kBeforeNumber, word) && is_digit(text[number])) best.offer(end, number + 1);
  // The original looks at two more characters to see whether the sentence ends here; the
  // abbreviation is the same either way.
  if (holds(kBeforeSmall, word) || (is_upper(text[at]) && holds(kCapitalBeforeSmall, word))) {
    best.offer(end, end + 2);
  }
  if (holds(kBeforeName, word) || (is_upper(text[at]) && word == "miss")) best.offer(end);
}

}  // namespace hdetach::tasks::ptb
