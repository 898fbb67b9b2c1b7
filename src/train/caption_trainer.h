// A run that trains a captioner, on the CPU or a GPU: LibTorch's operations around the LSTM of this
// library. Everything random is a function of the seed and the number of the update.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/captioner.h"
#include "tasks/caption_set.h"
#include "train/run_state.h"

namespace hdetach::train {

class CaptionTrainer : public RunState {
 public:
  CaptionTrainer(const Config& config, std::shared_ptr<const tasks::CaptionData> data);

  Update step();  // an update that is not counted yet

  // Greedy captions of the validation images, and the mean loss of their references.
  std::optional<Score> validate(const std::function<bool(double)>& go_on);
  // Captions of the test images by beam search, with METEOR where its tables are to be had.
  std::optional<Score> test(const std::function<bool(double)>& go_on);

  const std::vector<NamedTensor>& parameters() const override { return model_->parameters(); }
  Adam& adam() override { return adam_; }
  ScaleGenerator::State generator_state() override { return generator_.state(); }
  void set_generator_state(ScaleGenerator::State state) override { generator_.set_state(state); }
  bool has_test_set() const override { return !data_->test.empty(); }
  xray::Probe probe() const override;
  std::map<std::string, std::string> files() const override;
  std::string data_checksum() const override { return data_->checksum; }

 private:
  std::shared_ptr<const tasks::CaptionData> data_;
  tasks::CaptionSampler sampler_;
  at::Device device_;
  std::unique_ptr<Captioner> model_;
  Adam adam_;
  ScaleGenerator generator_;
};

// The model of a configuration for so many words and features of that shape, weights unset.
std::unique_ptr<Captioner> make_caption_model(const Config& config, int64_t words,
                                              const tasks::ImageFeatures& features);

}  // namespace hdetach::train
