// METEOR's table of paraphrases: pairs of phrases that mean the same, three lines a pair
// (probability, phrase, paraphrase). METEOR reads no meaning into the probabilities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hdetach::meteor {

class Paraphrases {
 public:
  // Reads the table, once. Throws std::runtime_error whose message opens with `name`.
  void read(std::string_view text, const std::string& name);

  bool empty() const { return entries_.empty(); }
  int32_t longest() const { return longest_; }  // words of a phrase

  // The number of a word, and of a phrase of numbered words; -1 where the table has it not.
  int32_t word(std::string_view word) const;
  int32_t phrase(const int32_t* words, int32_t size) const;

  struct Entry {
    int32_t paraphrase;
    int32_t line;  // its place among the pairs of the table
  };
  struct List {
    const Entry *first, *last;
    const Entry* begin() const { return first; }
    const Entry* end() const { return last; }
  };
  // The paraphrases of a phrase by their numbers, then by line.
  List of(int32_t phrase) const {
    return {entries_.data() + lists_[phrase], entries_.data() + lists_[phrase + 1]};
  }

 private:
  int32_t take(std::string_view line);  // the number of its phrase, -1 where it has no word
  size_t slot(const int32_t* words, int32_t size) const;  // where in slots_ it is or can be put
  void grow();

  std::unordered_map<std::string, int32_t> words_;
  std::vector<int32_t> pool_;         // the words of all phrases
  std::vector<size_t> begins_ = {0};  // [phrases + 1], in pool_
  std::vector<int32_t> slots_;        // open addressing: phrases by their words, -1 where free
  std::vector<Entry> entries_;        // [pairs]
  std::vector<size_t> lists_;         // [phrases + 1], in entries_
  int32_t longest_ = 0;
};

}  // namespace hdetach::meteor
