#include "tasks/caption_metrics_meteor.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tasks/meteor/aligner.h"
#include "tasks/meteor/matches.h"
#include "tasks/meteor/normalize.h"
#include "tasks/meteor/resources.h"
#include "tasks/meteor/stemmer.h"
#include "tasks/meteor/words.h"
#include "tasks/side_by_side.h"

namespace hdetach::tasks {
namespace {

constexpr size_t kMostModules = 4;
constexpr size_t kMostWords = 1000;  // of a caption that are aligned

// Places in MeteorStatistics. Of most numbers there are two, the candidate's and the reference's.
constexpr size_t kLength = 0, kFunctionWords = 2, kMatches = 4, kChunks = 20, kMatched = 21;
constexpr size_t kFunctionMatches = 2;  // after the content words of a module

using Numbers = std::vector<int32_t>;  // of the words of a caption

meteor::Caption aligned_part(const Numbers& caption) {
  return {caption.data(), static_cast<int32_t>(std::min(caption.size(), kMostWords))};
}

// Both captions are one piece: nothing is to be punished, though one chunk is.
bool is_perfect(const MeteorStatistics& s) {
  return s[kMatched] == s[kLength] && s[kMatched + 1] == s[kLength + 1] && s[kChunks] == 1;
}

// In METEOR's order of operations. Where a caption or the alignment is empty the score is zero.
double score(const MeteorStatistics& s, const MeteorOptions& options) {
  std::array<double, 2> share{};  // precision, recall
  for (size_t side = 0; side < 2; ++side) {
    const double functions = s[kFunctionWords + side];
    const double length =
        options.delta * (s[kLength + side] - functions) + (1.0 - options.delta) * functions;
    const auto add = [&](size_t first, double delta) {
      for (size_t m = 0; m < options.modules.size(); ++m) {
        share[side] += s[first + 4 * m + side] * options.modules[m].weight * delta;
      }
    };
    add(kMatches, options.delta);
    add(kMatches + kFunctionMatches, 1.0 - options.delta);
    share[side] /= length;
  }
  const double mean = 1.0 / ((1.0 - options.alpha) / share[0] + options.alpha / share[1]);
  const double pieces = is_perfect(s) ? 0.0 : s[kChunks] / ((s[kMatched] + s[kMatched + 1]) / 2);
  const double score = mean * (1.0 - options.gamma * std::pow(pieces, options.beta));
  return std::isnan(score) ? 0.0 : std::max(score, 0.0);
}

void add_to(MeteorStatistics& sum, const MeteorStatistics& s) {
  for (size_t i = 0; i < s.size(); ++i) {
    if (i != kChunks || !is_perfect(s)) sum[i] += s[i];
  }
}

// One thread's part of the work.
class Judge {
 public:
  Judge(const meteor::Words& words, const MeteorResources& resources, const MeteorOptions& options)
      : words_(words), options_(options), matches_(words, resources.paraphrases) {
    for (const auto& weighed : options.modules) modules_.push_back(weighed.module);
  }

  // The best score over the references, the first of equals. Captions: candidate, references.
  double judge(const std::vector<Numbers>& captions, MeteorStatistics& best) {
    double best_score = -1;
    for (size_t r = 1; r < captions.size(); ++r) {
      const MeteorStatistics s = compare(captions[0], captions[r]);
      const double its_score = score(s, options_);
      if (its_score > best_score) {
        best_score = its_score;
        best = s;
      }
    }
    return std::max(best_score, 0.0);
  }

 private:
  MeteorStatistics compare(const Numbers& candidate, const Numbers& reference) {
    const auto is_function = [&](int32_t word) { return words_.is_function(word); };
    MeteorStatistics s{};
    s[kLength] = static_cast<double>(candidate.size());
    s[kLength + 1] = static_cast<double>(reference.size());
    s[kFunctionWords] =
        static_cast<double>(std::count_if(candidate.begin(), candidate.end(), is_function));
    s[kFunctionWords + 1] =
        static_cast<double>(std::count_if(reference.begin(), reference.end(), is_function));
    matches_.find(aligned_part(candidate), aligned_part(reference), modules_);
    int32_t next = -1, candidate_next = -1;
    for (const meteor::Match& match : aligner_.align(matches_)) {
      const auto count = [&](const Numbers& caption, int32_t start, int32_t size, size_t side) {
        for (int32_t i = start; i < start + size; ++i) {
          const size_t kind = is_function(caption[i]) ? kFunctionMatches : 0;
          ++s[kMatches + 4 * match.module + kind + side];
        }
        s[kMatched + side] += size;
      };
      count(candidate, match.candidate_start, match.candidate_size, 0);
      count(reference, match.start, match.size, 1);
      s[kChunks] += match.start != next || match.candidate_start != candidate_next;
      next = match.start + match.size;
      candidate_next = match.candidate_start + match.candidate_size;
    }
    return s;
  }

  const meteor::Words& words_;
  const MeteorOptions& options_;
  std::vector<MeteorModule> modules_;
  meteor::Matches matches_;
  meteor::Aligner aligner_;
};

bool has(const MeteorOptions& options, MeteorModule module) {
  return std::any_of(options.modules.begin(), options.modules.end(),
                     [&](const auto& weighed) { return weighed.module == module; });
}

}  // namespace

std::vector<std::string> meteor_modules_off(const MeteorResources& resources,
                                            const MeteorOptions& options) {
  std::vector<std::string> off;
  if (has(options, MeteorModule::kStem) && !meteor::Stemmer::available()) {
    off.push_back(
        "stem: this build has no stemmer; install libstemmer-dev and build again to have it");
  }
  if (has(options, MeteorModule::kParaphrase) && resources.paraphrases.empty()) {
    off.push_back("paraphrase: " + resources.folder + " has no paraphrase-en.gz");
  }
  return off;
}

MeteorScore meteor(const std::vector<CaptionPair>& images, const MeteorResources& resources,
                   const MeteorOptions& options, int threads) {
  if (options.modules.empty() || options.modules.size() > kMostModules) {
    throw std::invalid_argument("[meteor] " + std::to_string(options.modules.size()) +
                                " modules; it takes one to four");
  }
  meteor::Words words(
      resources, {has(options, MeteorModule::kStem) && meteor::Stemmer::available(),
                  has(options, MeteorModule::kSynonym), has(options, MeteorModule::kParaphrase)});
  std::vector<std::vector<Numbers>> captions(images.size());  // of an image: candidate, references
  for (size_t i = 0; i < images.size(); ++i) {
    captions[i].push_back(words.add(meteor::normalize(images[i].candidate)));
    for (const std::string& reference : images[i].references) {
      captions[i].push_back(words.add(meteor::normalize(reference)));
    }
  }

  MeteorScore result;
  result.per_image.resize(images.size());
  result.statistics.resize(images.size());
  side_by_side(images.size(), threads, [&](size_t begin, size_t end) {
    Judge judge(words, resources, options);
    for (size_t i = begin; i < end; ++i) {
      result.per_image[i] = judge.judge(captions[i], result.statistics[i]);
    }
  });
  MeteorStatistics sum{};
  for (const MeteorStatistics& s : result.statistics) add_to(sum, s);
  result.corpus = score(sum, options);
  return result;
}

}  // namespace hdetach::tasks
