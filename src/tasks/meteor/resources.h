// The tables METEOR needs besides the captions.
#pragma once

#include <string>
#include <unordered_set>

#include "tasks/meteor/paraphrases.h"
#include "tasks/meteor/synonyms.h"

namespace hdetach::tasks {

struct MeteorResources {
  std::string folder;  // for messages
  meteor::Synonyms synonyms;
  meteor::Paraphrases paraphrases;  // empty where the folder has none
  std::unordered_set<std::string> function_words;
};

}  // namespace hdetach::tasks
