#include "tasks/meteor/resources.h"

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "formats/files.h"
#include "tasks/caption_metrics_meteor.h"
#include "tasks/meteor/lines.h"

namespace hdetach::tasks {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{1} << 32;  // of a table of paraphrases, unpacked

// METEOR takes for function words those that make up a thousandth or more of English news, of
// whatever kind they are. A folder with an english.words has its own list; this one has the same
// words, less quotes and dashes that normalize() never leaves, so that scores do not depend on it.
constexpr const char* kFunctionWords[] = {
    // articles, numbers and quantities
    "a", "all", "an", "first", "last", "more", "no", "one", "other", "some", "the", "two",
    // pronouns
    "he", "her", "his", "i", "it", "its", "she", "that", "their", "there", "they", "this", "we",
    "what", "which", "who", "you",
    // prepositions and conjunctions
    "about", "after", "and", "as", "at", "but", "by", "for", "from", "if", "in", "into", "of", "on",
    "or", "out", "over", "so", "than", "to", "up", "when", "with",
    // verbs
    "are", "be", "been", "can", "could", "had", "has", "have", "is", "said", "was", "were", "will",
    "would",
    // others
    "also", "new", "not", "people", "time", "year", "years",
    // what contractions leave, and signs
    "s", "'s", "'t", "'", "\"", "(", ")", "-lrb-", "-rrb-", ",", "-", "\u2014", ".", ":", "?", "$"};

// The first of these that is in the folder; an empty path where none is.
fs::path find(const fs::path& folder, std::initializer_list<const char*> names) {
  std::error_code ignored;  // a folder that cannot be searched holds no file that can be read
  for (const char* name : names) {
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  return {};
}

void add_meteor_synonyms(const fs::path& synsets, meteor::Synonyms& synonyms) {
  const fs::path exceptions = synsets.parent_path() / "english.exceptions";
  synonyms.add_synsets(files::read(synsets), synsets.string());
  synonyms.add_exceptions(files::read(exceptions), exceptions.string());
}

void add_wordnet(const fs::path& folder, meteor::Synonyms& synonyms) {
  for (const std::string name : {"noun", "verb", "adj", "adv"}) {
    const fs::path index = folder / ("index." + name), exceptions = folder / (name + ".exc");
    synonyms.add_wordnet_index(files::read(index), index.string());
    synonyms.add_wordnet_exceptions(files::read(exceptions), exceptions.string());
  }
}

std::unordered_set<std::string> read_function_words(const fs::path& path) {
  if (path.empty()) return {std::begin(kFunctionWords), std::end(kFunctionWords)};
  const std::string text = files::read(path), name = path.string();
  std::unordered_set<std::string> words;
  meteor::Lines lines(text, name);
  for (std::string_view line; lines.next(line);) words.emplace(line);
  return words;
}

}  // namespace

std::shared_ptr<const MeteorResources> load_meteor_resources(const std::string& folder) {
  auto resources = std::make_shared<MeteorResources>();
  resources->folder = folder;
  const fs::path synsets = find(folder, {"english.synsets", "resources/synonym/english.synsets"});
  if (!synsets.empty()) {
    add_meteor_synonyms(synsets, resources->synonyms);
  } else if (!find(folder, {"index.noun"}).empty()) {
    add_wordnet(folder, resources->synonyms);
  } else {
    throw std::runtime_error(
        (fs::path(folder) / "english.synsets").string() +
        ": not found, nor index.noun beside it; METEOR needs a folder with its own synonyms or "
        "with WordNet's files, which Debian's wordnet-base puts in /usr/share/wordnet");
  }
  resources->function_words =
      read_function_words(find(folder, {"english.words", "resources/function/english.words"}));
  const fs::path paraphrases = find(folder, {"paraphrase-en.gz", "data/paraphrase-en.gz"});
  if (!paraphrases.empty()) {
    resources->paraphrases.read(files::read_gzip(paraphrases, kMostBytes), paraphrases.string());
  }
  return resources;
}

}  // namespace hdetach::tasks
