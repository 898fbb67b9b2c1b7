#include "tasks/meteor/synonyms.h"

#include <algorithm>
#include <charconv>

#include "tasks/meteor/lines.h"

namespace hdetach::meteor {
namespace {

constexpr int32_t kMostSynset = 99999999;  // eight digits

// Debian mends three entries of WordNet 3.0, which moves those after them. METEOR's tables have the
// places before that. They matter because words of different parts of speech pass for synonyms
// where their synsets stand in the same place: "down" and "standing", for one. In the files that
// are not mended nothing stands at `first`.
struct Moved {
  std::string_view part;
  int32_t first, end, by;
};
constexpr Moved kMoved[] = {{"v", 613036, 2422967, 18}, {"a", 1681478, kMostSynset + 1, 1}};

struct Rule {
  std::string_view ending, put;
};

// WordNet's endings of nouns, verbs and adjectives, in the order METEOR tries them.
constexpr Rule kRules[] = {
    {"s", ""},      {"ses", "s"}, {"xes", "x"}, {"zes", "z"}, {"ches", "ch"}, {"shes", "sh"},
    {"men", "man"}, {"ies", "y"}, {"es", "e"},  {"es", ""},   {"ed", "e"},    {"ed", ""},
    {"ing", "e"},   {"ing", ""},  {"er", ""},   {"est", ""},  {"er", "e"},    {"est", "e"}};

// Of eight digits at most; -1 where the word is no number.
int32_t read_number(std::string_view word) {
  int32_t number = -1;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && stop == end && number <= kMostSynset ? number : -1;
}

bool ends_with(std::string_view word, std::string_view ending) {
  return word.size() >= ending.size() && word.substr(word.size() - ending.size()) == ending;
}

size_t characters(std::string_view word) {
  return static_cast<size_t>(std::count_if(word.begin(), word.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string_view Synonyms::keep(std::string text) {
  texts_.push_back(std::move(text));
  return texts_.back();
}

void Synonyms::read_synsets(std::string_view line, const Lines& lines) {
  for (std::string_view digits; !(digits = take_word(line)).empty();) {
    const int32_t synset = read_number(digits);
    if (synset < 0) lines.fail("'" + std::string(digits) + "' is no synset of eight digits");
    synsets_.push_back(synset);
  }
}

void Synonyms::add_synsets(std::string text, const std::string& name) {
  Lines lines(keep(std::move(text)), name);
  for (std::string_view word, line; lines.next(word);) {
    if (!lines.next(line)) lines.fail("the file ends after a word, before its synsets");
    const size_t begin = synsets_.size();
    read_synsets(line, lines);
    words_.emplace(word, Range{begin, synsets_.size()});
  }
}

void Synonyms::add_exceptions(std::string text, const std::string& name) {
  Lines lines(keep(std::move(text)), name);
  for (std::string_view base, line; lines.next(base);) {
    if (!lines.next(line)) lines.fail("the file ends after a base form, before its other forms");
    for (std::string_view form; !(form = take_word(line)).empty();) bases_.emplace(form, base);
  }
}

void Synonyms::add_wordnet_index(std::string text, const std::string& name) {
  Lines lines(keep(std::move(text)), name);
  const size_t first = synsets_.size();
  std::string_view part;
  // Each line: word, part of speech, how many synsets, how many kinds of pointers, these, how many
  // senses twice, the synsets.
  for (std::string_view line; lines.next(line);) {
    if (line.substr(0, 2) == "  ") continue;  // the licence
    const std::string_view word = take_word(line);
    part = take_word(line);
    const int32_t count = read_number(take_word(line));
    for (int32_t skip = read_number(take_word(line)) + 2; skip > 0; --skip) {
      if (take_word(line).empty()) break;
    }
    const size_t begin = synsets_.size();
    read_synsets(line, lines);
    if (count < 1 || synsets_.size() - begin != static_cast<size_t>(count)) {
      lines.fail("this is no line of a WordNet index: it has not as many synsets as it says");
    }
    words_.emplace(word, Range{begin, synsets_.size()});
  }
  const auto begin = synsets_.begin() + static_cast<ptrdiff_t>(first);
  for (const Moved& moved : kMoved) {
    if (part != moved.part || std::find(begin, synsets_.end(), moved.first) == synsets_.end()) {
      continue;
    }
    std::for_each(begin, synsets_.end(), [&](int32_t& synset) {
      if (synset >= moved.first && synset < moved.end) synset -= moved.by;
    });
  }
}

void Synonyms::add_wordnet_exceptions(std::string text, const std::string& name) {
  Lines lines(keep(std::move(text)), name);
  for (std::string_view line; lines.next(line);) {
    const std::string_view form = take_word(line);
    for (std::string_view base; !(base = take_word(line)).empty();) bases_.emplace(form, base);
  }
}

void Synonyms::append(std::string_view word, std::vector<int32_t>& synsets) const {
  const auto [begin, end] = words_.equal_range(word);
  for (auto entry = begin; entry != end; ++entry) {
    synsets.insert(synsets.end(), synsets_.begin() + static_cast<ptrdiff_t>(entry->second.begin),
                   synsets_.begin() + static_cast<ptrdiff_t>(entry->second.end));
  }
}

// The first rule that leads to a word with synsets; nothing where there is none.
std::string Synonyms::base_by_rule(const std::string& word) const {
  if (ends_with(word, "ss") || characters(word) <= 2) return word;
  for (const Rule& rule : kRules) {
    if (!ends_with(word, rule.ending)) continue;
    std::string base = word.substr(0, word.size() - rule.ending.size()).append(rule.put);
    if (words_.count(base) > 0) return base;
  }
  return {};
}

std::vector<int32_t> Synonyms::synsets(const std::string& word) const {
  std::vector<int32_t> synsets;
  append(word, synsets);
  const auto [begin, end] = bases_.equal_range(word);
  for (auto entry = begin; entry != end; ++entry) append(entry->second, synsets);
  if (begin == end) append(base_by_rule(word), synsets);
  std::sort(synsets.begin(), synsets.end());
  synsets.erase(std::unique(synsets.begin(), synsets.end()), synsets.end());
  return synsets;
}

}  // namespace hdetach::meteor
