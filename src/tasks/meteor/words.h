// The words of all captions, each looked up once: what it shares with other words is then told by
// comparing numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tasks/meteor/resources.h"
#include "tasks/meteor/stemmer.h"

namespace hdetach::meteor {

// What to look up; what is not looked up matches nothing.
struct Lookups {
  bool stems = false, synonyms = false, paraphrases = false;
};

class Words {
 public:
  Words(const tasks::MeteorResources& resources, Lookups lookups)
      : resources_(resources), lookups_(lookups) {}

  // The numbers of a normalised caption's words; equal words have equal numbers.
  std::vector<int32_t> add(std::string_view caption);

  bool is_function(int32_t word) const { return words_[word].function; }
  bool same_stem(int32_t a, int32_t b) const {
    return words_[a].stem >= 0 && words_[a].stem == words_[b].stem;
  }
  bool are_synonyms(int32_t a, int32_t b) const;
  int32_t paraphrase_word(int32_t word) const { return words_[word].paraphrase; }

 private:
  struct Word {
    int32_t stem = -1;
    int32_t paraphrase = -1;  // its number in the table of paraphrases
    uint64_t synset_bits =
        0;  // a bit for each synset, several to a bit: most pairs differ in these
    size_t synsets = 0, synsets_end = 0;
    bool function = false;
  };

  int32_t add_word(std::string_view text);

  const tasks::MeteorResources& resources_;
  Lookups lookups_;
  Stemmer stemmer_;
  std::deque<std::string> texts_;  // what the keys point into
  std::unordered_map<std::string_view, int32_t> numbers_;
  std::unordered_map<std::string, int32_t> stems_;
  std::vector<Word> words_;
  std::vector<int32_t> synsets_;  // of all words, each word's sorted
};

}  // namespace hdetach::meteor
