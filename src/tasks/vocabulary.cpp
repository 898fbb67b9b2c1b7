#include "tasks/vocabulary.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hdetach::tasks {
namespace {

constexpr std::string_view kSpecial[] = {"<pad>", "<start>", "<end>", "<unk>"};
constexpr int64_t kSpecials = 4;

bool is_special(std::string_view word) {
  return std::find(kSpecial, kSpecial + kSpecials, word) != kSpecial + kSpecials;
}

// Calls `take` with each word until it returns false.
template <class Take>
void for_each_word(std::string_view caption, Take take) {
  while (!caption.empty()) {
    const size_t end = std::min(caption.find(' '), caption.size());
    if (end > 0 && !take(caption.substr(0, end))) return;
    caption.remove_prefix(std::min(end + 1, caption.size()));
  }
}

std::vector<std::string> frequent_words(const std::vector<std::string>& captions,
                                        int64_t more_than) {
  std::unordered_map<std::string_view, int64_t> counts;
  for (const std::string& caption : captions) {
    for_each_word(caption, [&counts](std::string_view word) {
      if (!is_special(word)) ++counts[word];
      return true;
    });
  }
  std::vector<std::pair<std::string_view, int64_t>> frequent;
  for (const auto& entry : counts) {
    if (entry.second > more_than) frequent.push_back(entry);
  }
  std::sort(frequent.begin(), frequent.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> words(kSpecial, kSpecial + kSpecials);
  for (const auto& entry : frequent) words.emplace_back(entry.first);
  return words;
}

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& captions, int64_t more_than)
    : Vocabulary(frequent_words(captions, more_than)) {}

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  if (size() < kSpecials || !std::equal(kSpecial, kSpecial + kSpecials, words_.begin())) {
    throw std::runtime_error("vocabulary: the first words must be <pad> <start> <end> <unk>");
  }
  // The special words have no code by name: a caption that holds "<end>" does not end there.
  for (int64_t i = kSpecials; i < size(); ++i) {
    const std::string& word = words_[i];
    if (word.empty() || word.find(' ') != std::string::npos) {
      throw std::runtime_error("vocabulary: word " + std::to_string(i) +
                               " is empty or has a space");
    }
    if (is_special(word) || !code_.emplace(word, static_cast<int32_t>(i)).second) {
      throw std::runtime_error("vocabulary: \"" + word + "\" stands twice");
    }
  }
}

int32_t Vocabulary::code(const std::string& word) const {
  const auto found = code_.find(word);
  return found == code_.end() ? kUnknown : found->second;
}

std::vector<int32_t> Vocabulary::encode(const std::string& caption, int64_t most) const {
  std::vector<int32_t> codes;
  for_each_word(caption, [&](std::string_view word) {
    if (static_cast<int64_t>(codes.size()) >= most) return false;
    codes.push_back(code(std::string(word)));
    return true;
  });
  return codes;
}

std::string Vocabulary::text(const std::vector<int32_t>& codes) const {
  std::string text;
  for (const int32_t code : codes) {
    if (code == kEnd) break;
    if (code == kPadding || code == kStart) continue;
    text += (text.empty() ? "" : " ") + words_.at(static_cast<size_t>(code));
  }
  return text;
}

}  // namespace hdetach::tasks
