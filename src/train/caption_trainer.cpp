#include "train/caption_trainer.h"

#include <ATen/Context.h>
#include <ATen/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <mutex>
#include <utility>

#include "train/caption_evaluation.h"
#include "train/caption_tensors.h"
#include "train/run_history.h"
#include "train/streams.h"
#include "xray/one_blas_thread.h"
#include "xray/probes.h"

namespace hdetach::train {
namespace {

// The mask of an update depends on the seed and its number alone: nothing of it is to be saved.
c10::optional<at::Tensor> dropout_mask(const Config& config, const at::Device& device,
                                       int64_t update, const at::Tensor& inputs) {
  if (config.dropout == 0) return c10::nullopt;
  at::Generator generator = at::globalContext().defaultGenerator(device);
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(random_bits(stream_seed(config.seed, Stream::kDropout), update));
  }
  return at::empty({inputs.size(0), inputs.size(1), config.hidden},
                   at::TensorOptions().device(device))
      .bernoulli_(1 - config.dropout)
      .div_(1 - config.dropout);
}

std::vector<at::Tensor> gradients_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.tensor.grad();
    TORCH_CHECK(gradient.defined(), "[train] ", parameter.name,
                " has no gradient: the loss does not depend on it.");
    gradients.push_back(gradient.contiguous());
  }
  return gradients;
}

}  // namespace

std::unique_ptr<Captioner> make_caption_model(const Config& config, int64_t words,
                                              const tasks::ImageFeatures& features) {
  CaptionerShape shape;
  shape.words = words;
  shape.positions = features.positions();
  shape.channels = features.channels();
  shape.embedding = config.embedding;
  shape.hidden = config.hidden;
  return make_captioner(config.model, shape, device_of(config));
}

CaptionTrainer::CaptionTrainer(const Config& config, std::shared_ptr<const tasks::CaptionData> data)
    : RunState(config),
      data_(std::move(data)),
      sampler_(data_->train, config.batch, config.captions,
               stream_seed(config.seed, Stream::kMinibatches)),
      device_(device_of(config)),
      model_(make_caption_model(config, data_->vocabulary.size(), *data_->features)),
      adam_(tensors(model_->parameters()), config.lr),
      generator_(stream_seed(config.seed, Stream::kDetach)) {
  model_->init(stream_seed(config.seed, Stream::kInitialWeights));
  const auto images = static_cast<int64_t>(data_->train.size());
  progress.epoch_updates = config.updates_per_epoch > 0
                               ? config.updates_per_epoch
                               : (images + config.batch - 1) / config.batch;
}

std::map<std::string, std::string> CaptionTrainer::files() const {
  std::string words;
  for (const std::string& word : data_->vocabulary.words()) words += word + "\n";
  return {{kWordsFile, words}};
}

xray::Probe CaptionTrainer::probe() const {
  return xray::show_tell_probe(parameters(), *data_->features, data_->valid, config().captions);
}

// BLAS splits its sums by the number of its threads; LibTorch's own operations share out whole
// results. With the former on one thread the bits of a run do not depend on --threads.
Update CaptionTrainer::step() {
  const xray::OneBlasThread one_blas_thread;
  const Config& c = config();
  const tasks::CaptionBatch drawn = sampler_.minibatch(progress.update);
  const CaptionTensors batch = tensors_of(drawn, *data_->features, data_->train, device_);
  GradientPolicy policy;
  policy.detach = detach();
  policy.mode = c.mode == "damp" ? Mode::kDamp : Mode::kDetach;
  const at::Tensor scale =
      sample(policy, model_->steps(drawn.steps), batch.lengths.size(0), 1, generator_).h_scale[0];
  c10::optional<at::Tensor> h_scale;
  if (scale.defined()) h_scale = scale.to(device_, at::kFloat, /*non_blocking=*/true);

  for (const NamedTensor& parameter : parameters()) parameter.tensor.mutable_grad().reset();
  const at::Tensor loss =
      model_->loss(batch, h_scale, dropout_mask(c, device_, progress.update, batch.inputs));
  loss.backward();
  const std::vector<at::Tensor> gradients = gradients_of(parameters());
  const Measured measured = measure(loss, gradients, c.clamp);

  Update update{};
  update.loss = measured.loss;
  update.grad_norm = measured.norm;
  update.applied = std::isfinite(update.loss) && std::isfinite(update.grad_norm);
  if (!update.applied) return update;
  const bool clamped = c.clamp > 0 && measured.largest > c.clamp;
  const double norm = clamped ? measured.clamped_norm : measured.norm;
  const bool too_long = c.clip > 0 && norm > c.clip;
  update.clipped = clamped || too_long;
  adam_.step(gradients, too_long ? c.clip / norm : 1.0, clamped ? c.clamp : 0.0);
  return update;
}

std::optional<Score> CaptionTrainer::validate(const std::function<bool(double)>& go_on) {
  const xray::OneBlasThread one_blas_thread;
  // Captions take most of the time.
  const auto loss = reference_loss(config(), *model_, *data_, data_->valid,
                                   [&](double share) { return go_on(0.2 * share); });
  if (!loss) return std::nullopt;
  const auto captions = caption_images(config(), *model_, *data_, data_->valid, /*beam=*/1,
                                       [&](double share) { return go_on(0.2 + 0.8 * share); });
  if (!captions) return std::nullopt;
  Score score = score_captions(config(), *captions, /*with_meteor=*/false);
  score.loss = *loss;
  return score;
}

std::optional<Score> CaptionTrainer::test(const std::function<bool(double)>& go_on) {
  const xray::OneBlasThread one_blas_thread;
  const auto captions =
      caption_images(config(), *model_, *data_, data_->test, config().beam, go_on);
  if (!captions) return std::nullopt;
  return score_captions(config(), *captions, /*with_meteor=*/true);
}

}  // namespace hdetach::train
