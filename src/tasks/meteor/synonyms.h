// Which sets of synonyms (WordNet's synsets) a word belongs to, as METEOR looks it up: those of the
// word itself and those of its base form.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hdetach::meteor {

class Lines;

class Synonyms {
 public:
  // Tables are added with the name of their file, which opens every message. All throw
  // std::runtime_error.

  // METEOR's: a word and on the next line its synsets.
  void add_synsets(std::string text, const std::string& name);
  // METEOR's: a base form and on the next line forms of it that no rule finds.
  void add_exceptions(std::string text, const std::string& name);
  // WordNet's index of one part of speech. A synset's number is its place in the data file of that
  // part; as METEOR does, numbers of different parts are not told apart.
  void add_wordnet_index(std::string text, const std::string& name);
  // WordNet's: a form and its base forms on one line.
  void add_wordnet_exceptions(std::string text, const std::string& name);

  // Sorted, each once.
  std::vector<int32_t> synsets(const std::string& word) const;

 private:
  struct Range {
    size_t begin, end;  // in synsets_
  };

  std::string_view keep(std::string text);
  void read_synsets(std::string_view line, const Lines& lines);
  void append(std::string_view word, std::vector<int32_t>& synsets) const;
  std::string base_by_rule(const std::string& word) const;

  std::deque<std::string> texts_;  // what the keys point into
  std::vector<int32_t> synsets_;
  std::unordered_multimap<std::string_view, Range> words_;
  std::unordered_multimap<std::string_view, std::string_view> bases_;  // by form
};

}  // namespace hdetach::meteor
