// METEOR 1.5 for captions, as the COCO caption evaluation runs it (-l en -norm, the ranking task).
// A candidate is aligned with each reference word by word: equal words, equal stems, synonyms,
// paraphrases. The score weighs how much of both is aligned, and in how many pieces. The parts are
// in tasks/meteor/.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tasks/caption_metrics.h"

namespace hdetach::tasks {

enum class MeteorModule { kExact, kStem, kSynonym, kParaphrase };

struct MeteorOptions {
  struct Weighed {
    MeteorModule module;
    double weight;  // of a match in precision and recall
  };
  std::vector<Weighed> modules = {{MeteorModule::kExact, 1.0},  // one to four, in this order
                                  {MeteorModule::kStem, 0.6},
                                  {MeteorModule::kSynonym, 0.8},
                                  {MeteorModule::kParaphrase, 0.6}};
  double alpha = 0.85;  // recall against precision
  double beta = 0.20;   // how soon pieces are punished
  double gamma = 0.60;  // how much they are punished at most
  double delta = 0.75;  // content words against function words
};

struct MeteorResources;

// Reads the tables of a folder, which is one of
//   METEOR's own: english.synsets, english.exceptions, and where they are there english.words and
//     paraphrase-en.gz; flat, or as METEOR's download lays them out
//   WordNet's, as Debian's wordnet-base installs it: index.* and *.exc of the four parts of speech
// Throws std::runtime_error with the file and what is wrong with it.
std::shared_ptr<const MeteorResources> load_meteor_resources(const std::string& folder);

// Which of the modules asked for will find nothing, and why: a sentence each.
std::vector<std::string> meteor_modules_off(const MeteorResources& resources,
                                            const MeteorOptions& options);

// The numbers METEOR itself prints for a segment: words of the candidate and of the reference,
// function words of both; for each of four modules the content words matched in both, then the
// function words; chunks; words matched in both.
using MeteorStatistics = std::array<double, 23>;

struct MeteorScore {
  double corpus = 0;                         // of the statistics summed, not the mean of per_image
  std::vector<double> per_image;             // [images], with the reference that scores best
  std::vector<MeteorStatistics> statistics;  // [images], with that reference
};

// Words past the first 1,000 of a caption count in its length but are not aligned: the search takes
// the product of both lengths. Throws std::invalid_argument for no module or more than four.
MeteorScore meteor(const std::vector<CaptionPair>& images, const MeteorResources& resources,
                   const MeteorOptions& options, int threads);

}  // namespace hdetach::tasks
