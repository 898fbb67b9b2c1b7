#include "train/caption_evaluation.h"

#include <ATen/Parallel.h>
#include <ATen/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "models/captioner.h"
#include "tasks/caption_metrics_meteor.h"
#include "train/caption_tensors.h"

namespace hdetach::train {
namespace {

constexpr size_t kSamples = 8;  // captions that are kept of each epoch: of the first images

// Calls work(first, end) for stretches of the images; false when go_on() said no.
template <class Work>
bool in_stretches(size_t images, size_t at_once, const std::function<bool(double)>& go_on,
                  const Work& work) {
  for (size_t first = 0; first < images; first += at_once) {
    if (!go_on(static_cast<double>(first) / static_cast<double>(images))) return false;
    work(first, std::min(first + at_once, images));
  }
  return true;
}

}  // namespace

bool find_captions(const Config& config, Captioner& model, const tasks::ImageFeatures& features,
                   const std::vector<int64_t>& rows, const SearchOptions& options,
                   const std::function<void(size_t, const Found&)>& take,
                   const std::function<bool(double)>& go_on, size_t at_once) {
  return in_stretches(rows.size(), at_once, go_on, [&](size_t first, size_t end) {
    const std::vector<int64_t> here(rows.begin() + first, rows.begin() + end);
    const auto found = search(model, gather_features(features, here, device_of(config)), options);
    for (size_t i = first; i < end; ++i) take(i, found[i - first]);
  });
}

std::optional<std::vector<tasks::CaptionPair>> caption_images(
    const Config& config, Captioner& model, const tasks::CaptionData& data,
    const std::vector<tasks::CaptionedImage>& images, int64_t beam,
    const std::function<bool(double)>& go_on) {
  SearchOptions options;
  options.beam = beam;
  options.most_words = config.most_words;
  std::vector<int64_t> rows;
  for (const tasks::CaptionedImage& image : images) rows.push_back(image.row);
  std::vector<tasks::CaptionPair> captions;
  const auto take = [&](size_t i, const Found& found) {
    captions.push_back({images[i].id, data.vocabulary.text(found.words), images[i].references});
  };
  if (!find_captions(config, model, *data.features, rows, options, take, go_on)) {
    return std::nullopt;
  }
  return captions;
}

std::optional<double> reference_loss(const Config& config, Captioner& model,
                                     const tasks::CaptionData& data,
                                     const std::vector<tasks::CaptionedImage>& images,
                                     const std::function<bool(double)>& go_on) {
  const c10::NoGradGuard no_grad;
  double sum = 0;
  int64_t words = 0;
  const bool done =
      in_stretches(images.size(), kImagesAtOnce, go_on, [&](size_t first, size_t end) {
        std::vector<int64_t> places(end - first);
        std::iota(places.begin(), places.end(), static_cast<int64_t>(first));
        const tasks::CaptionBatch batch = tasks::first_captions(images, places, config.captions);
        const int64_t here =
            std::accumulate(batch.lengths.begin(), batch.lengths.end(), int64_t{0});
        const CaptionTensors tensors = tensors_of(batch, *data.features, images, device_of(config));
        sum += static_cast<double>(here) *
               model.loss(tensors, c10::nullopt, c10::nullopt).item<double>();
        words += here;
      });
  if (!done) return std::nullopt;
  return sum / static_cast<double>(words);
}

Score score_captions(const Config& config, const std::vector<tasks::CaptionPair>& captions,
                     bool with_meteor) {
  const int threads = at::get_num_threads();
  const tasks::CountedCaptions counted = tasks::count_ngrams(captions);
  const tasks::BleuScore bleu = tasks::bleu(counted);
  Score score;
  for (size_t n = 0; n < bleu.corpus.size(); ++n) {
    score.captions.emplace("Bleu_" + std::to_string(n + 1), bleu.corpus[n]);
  }
  if (with_meteor && std::filesystem::exists(config.wordnet)) {
    const auto tables = tasks::load_meteor_resources(config.wordnet);
    score.captions.emplace("METEOR", tasks::meteor(captions, *tables, {}, threads).corpus);
  }
  score.captions.emplace("ROUGE_L", tasks::rouge_l(counted, threads).corpus);
  score.measure = tasks::cider(counted).cider_d.corpus;
  score.captions.emplace("CIDEr", score.measure);
  for (size_t i = 0; i < std::min(kSamples, captions.size()); ++i) {
    score.samples.push_back({captions[i].image_id, captions[i].candidate});
  }
  return score;
}

}  // namespace hdetach::train
