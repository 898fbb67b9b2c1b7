#include "models/caption_search.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "models/captioner.h"

namespace hdetach {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

struct Hypothesis {
  int64_t image;
  Found so_far;
};

struct Choice {
  int32_t word;
  double log_probability;
};

struct Candidate {
  int64_t row;  // of the hypothesis it goes on from
  int32_t word;
  double log_probability;  // of the whole
};

// The likeliest words of each row, best first, the lower code first among equals.
class Choices {
 public:
  // log_probability: [rows, codes from first_code on]
  Choices(const at::Tensor& log_probability, int64_t first_code, int64_t count)
      : count_(std::min(count, log_probability.size(1))) {
    // topk keeps any of several equals, so none may be equal: the bits of -log p, which grow with
    // it as those of all floats from 0 on, and below them the code.
    at::Tensor bits = log_probability.abs().contiguous().view(at::kInt).to(at::kLong);
    const at::Tensor code = at::arange(first_code, first_code + bits.size(1), bits.options());
    const auto [keys, place] = bits.mul_(kCodes).add_(code).topk(count_, 1, /*largest=*/false);
    keys_ = keys.cpu().contiguous();
  }

  int64_t count() const { return count_; }
  Choice get(int64_t row, int64_t rank) const {
    const int64_t key = keys_.data_ptr<int64_t>()[row * count_ + rank];
    const int32_t bits = static_cast<int32_t>(key / kCodes);
    float cost;
    std::memcpy(&cost, &bits, sizeof cost);
    return {static_cast<int32_t>(key % kCodes), -static_cast<double>(cost)};
  }

 private:
  static constexpr int64_t kCodes = int64_t{1} << 32;
  int64_t count_;
  at::Tensor keys_;  // [rows, count]
};

// The captions of one image that have ended.
class Ended {
 public:
  explicit Ended(const SearchOptions& options) : options_(options) {
    best_.log_probability = kWorst;
  }

  int64_t places_left() const { return options_.beam - count_; }
  void add(Found caption) {
    ++count_;
    const double score = score_of(caption.log_probability, caption.words.size());
    if (score <= score_) return;
    score_ = score;
    best_ = std::move(caption);
  }
  // Log probabilities only fall, and no caption is longer than most_words.
  bool beats_all_from(double log_probability) const {
    return score_of(log_probability, options_.most_words) <= score_;
  }
  Found take_best() { return std::move(best_); }

 private:
  double score_of(double log_probability, int64_t words) const {
    return log_probability / std::pow(static_cast<double>(words + 1), options_.length_power);
  }

  const SearchOptions& options_;
  int64_t count_ = 0;
  double score_ = kWorst;
  Found best_;
};

class Search {
 public:
  Search(Captioner& captioner, const at::Tensor& features, const SearchOptions& options)
      : captioner_(captioner),
        options_(options),
        state_(captioner.begin(features)),
        never_(
            at::tensor(std::vector<int64_t>(options.never.begin(), options.never.end()), at::kLong)
                .to(features.device())),
        ended_(features.size(0), Ended(options)) {
    for (int64_t image = 0; image < features.size(0); ++image) live_.push_back({image, {}});
  }

  std::vector<Found> run() {
    for (int64_t words = 0; !live_.empty(); ++words) advance(words == options_.most_words);
    std::vector<Found> found;
    for (Ended& ended : ended_) found.push_back(ended.take_best());
    return found;
  }

 private:
  void advance(bool must_end);
  // What the rows begin to end, all of one image, may become, best first.
  std::vector<Candidate> best(int64_t begin, int64_t end, const Choices& choices,
                              size_t places) const;
  void keep(const std::vector<int64_t>& parents, std::vector<Hypothesis> next);

  at::Tensor on_device(const std::vector<int64_t>& values) const {
    return at::tensor(values, at::kLong).to(state_.h.device());
  }

  Captioner& captioner_;
  const SearchOptions& options_;
  Captioner::State state_;
  const at::Tensor never_;
  std::vector<Ended> ended_;      // one an image
  std::vector<Hypothesis> live_;  // by image, the best first: the rows of state_
};

void Search::advance(bool must_end) {
  std::vector<int64_t> last;
  for (const Hypothesis& h : live_) {
    last.push_back(h.so_far.words.empty() ? options_.start : h.so_far.words.back());
  }
  const Captioner::Step step = captioner_.step(state_, on_device(last));
  const at::Tensor& log_probability = step.log_probability;
  const Choices choices =
      must_end ? Choices(log_probability.narrow(1, options_.end, 1), options_.end, 1)
               : Choices(log_probability.index_fill(1, never_, kWorst), 0, options_.beam);
  at::Tensor attention;
  if (options_.attention && step.attention.defined()) attention = step.attention.cpu().contiguous();

  std::vector<int64_t> parents;
  std::vector<Hypothesis> next;
  for (size_t begin = 0, end = 0; begin < live_.size(); begin = end) {
    const int64_t image = live_[begin].image;
    while (end < live_.size() && live_[end].image == image) ++end;
    Ended& ended = ended_[image];
    const size_t first = next.size();
    for (const Candidate& candidate : best(begin, end, choices, ended.places_left())) {
      Found caption = live_[candidate.row].so_far;
      caption.log_probability = candidate.log_probability;
      if (candidate.word == options_.end) {
        ended.add(std::move(caption));
        continue;
      }
      caption.words.push_back(candidate.word);
      if (attention.defined()) {
        const float* const from = attention.data_ptr<float>() + candidate.row * attention.size(1);
        caption.attention.emplace_back(from, from + attention.size(1));
      }
      next.push_back({image, std::move(caption)});
      parents.push_back(candidate.row);
    }
    if (next.size() > first && ended.beats_all_from(next[first].so_far.log_probability)) {
      next.resize(first);
      parents.resize(first);
    }
  }
  keep(parents, std::move(next));
}

std::vector<Candidate> Search::best(int64_t begin, int64_t end, const Choices& choices,
                                    size_t places) const {
  std::vector<Candidate> all;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t rank = 0; rank < choices.count(); ++rank) {
      const Choice choice = choices.get(row, rank);
      if (!std::isfinite(choice.log_probability)) break;
      all.push_back({row, choice.word, live_[row].so_far.log_probability + choice.log_probability});
    }
  }
  // By row and code before, and so among equals after.
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.log_probability > b.log_probability;
  });
  if (all.size() > places) all.resize(places);
  return all;
}

void Search::keep(const std::vector<int64_t>& parents, std::vector<Hypothesis> next) {
  const bool same_images =
      std::equal(live_.begin(), live_.end(), next.begin(), next.end(),
                 [](const Hypothesis& a, const Hypothesis& b) { return a.image == b.image; });
  live_ = std::move(next);
  const at::Tensor rows = on_device(parents);
  const auto select = [&](at::Tensor& part) {
    if (part.defined()) part = part.index_select(0, rows);
  };
  select(state_.h);
  select(state_.c);
  if (same_images) return;  // what depends on the image alone is large and already in place
  select(state_.features);
  select(state_.projected);
}

}  // namespace

std::vector<Found> search(Captioner& captioner, const at::Tensor& features,
                          const SearchOptions& options) {
  TORCH_CHECK(options.beam > 0, "[search] beam is ", options.beam, "; it must be positive.");
  TORCH_CHECK(options.most_words > 0, "[search] most_words is ", options.most_words,
              "; it must be positive.");
  TORCH_CHECK(options.length_power >= 0, "[search] length_power is ", options.length_power,
              "; it must not be negative.");
  const c10::NoGradGuard no_grad;
  return Search(captioner, features, options).run();
}

}  // namespace hdetach
