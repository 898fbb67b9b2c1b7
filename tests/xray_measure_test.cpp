// The x-ray of whole models: its totals are the gradients that training sees, its shares do what
// the paper says.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "models/captioner.h"
#include "train/caption_tensors.h"
#include "train/caption_trainer.h"
#include "train/make_task.h"
#include "train/sequence_run.h"
#include "xray/measure.h"
#include "xray/probes.h"

namespace hdetach {
namespace {

using at::Tensor;
using xray::Record;

// Of the LSTM's weights, with both biases as one, as the x-ray has them.
double lstm_norm(const std::vector<NamedTensor>& parameters, const std::vector<Tensor>& gradients) {
  double squares = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    if (name.find("_l") == std::string::npos || name.find("bias_hh") != std::string::npos) continue;
    squares += std::pow(gradients[i].norm().item<double>(), 2);
  }
  return std::sqrt(squares);
}

TEST(XrayMeasure, TheNormOfAClassifierIsThatOfItsTrainingGradient) {
  for (const int64_t layers : {1, 2}) {
    train::Config config = train::default_config("copy");
    config.delay = 12;
    config.hidden = 24;
    config.layers = layers;
    config.train_size = 10;
    config.valid_size = 100;
    const tasks::Task task = train::make_task(config);
    SequenceClassifier model = train::make_model(config, *task.valid);
    const tasks::SequenceSet& set = *task.valid;
    std::vector<int64_t> rows(xray::kProbeRows);
    std::iota(rows.begin(), rows.end(), 0);
    const Tensor x = at::empty({set.steps(), xray::kProbeRows, set.inputs()});
    set.read_inputs(rows, 0, set.steps(), x.data_ptr<float>());
    std::vector<uint8_t> target(set.target_steps() * rows.size());
    set.read_targets(rows, set.steps() - set.target_steps(), set.steps(), target.data());
    model.train_pass(x, target.data(), set.target_steps());

    const xray::Probe probe = xray::classifier_probe(model.parameters(), set);
    const Record record = xray::measure(probe, {})[0];
    const double want = lstm_norm(model.parameters(), model.gradients());
    EXPECT_NEAR(record.weights.norm, want, 1e-5 * want) << layers;  // trained in float32
    EXPECT_EQ(record.steps, set.steps());
    EXPECT_EQ(record.lags, xray::usual_lags(set.steps()));
  }
}

TEST(XrayMeasure, TheNormOfACaptionerIsThatOfItsLossOnCaptionsOfManyLengths) {
  train::Config config = train::default_config("caption");
  config.data = "generated";
  config.train_size = config.valid_size = 20;
  config.hidden = 16;
  config.embedding = 8;
  const auto data = std::get<std::shared_ptr<const tasks::CaptionData>>(train::make_data(config));
  const auto model = train::make_caption_model(config, data->vocabulary.size(), *data->features);
  model->init(7);
  std::vector<int64_t> places(xray::kProbeRows / config.captions);
  std::iota(places.begin(), places.end(), 0);
  const auto batch = tasks::first_captions(data->valid, places, config.captions);
  ASSERT_NE(*std::min_element(batch.lengths.begin(), batch.lengths.end()),
            *std::max_element(batch.lengths.begin(), batch.lengths.end()));
  model->loss(train::tensors_of(batch, *data->features, data->valid, at::kCPU), {}, {}).backward();
  std::vector<Tensor> gradients;
  for (const NamedTensor& each : model->parameters()) gradients.push_back(each.tensor.grad());

  const xray::Probe probe =
      xray::show_tell_probe(model->parameters(), *data->features, data->valid, config.captions);
  const Record record = xray::measure(probe, {})[0];
  const double want = lstm_norm(model->parameters(), gradients);
  EXPECT_NEAR(record.weights.norm, want, 1e-5 * want);
}

TEST(XrayMeasure, LagsCountFromTheLastStepOfEachRow) {
  xray::Probe probe = xray::random_probe(6, 9, 1.0, 5);
  const std::vector<int64_t> lengths = {9, 4};
  probe.x = probe.x.slice(1, 0, 2);
  probe.dh_last = Tensor();
  probe.head_weight = at::randn({3, 6}, at::kDouble);
  probe.head_bias = at::zeros({3}, at::kDouble);
  probe.targets = at::full({9, 2}, -1, at::kLong);
  for (int64_t row = 0; row < 2; ++row) probe.targets.select(1, row).slice(0, 1, lengths[row]) = 2;
  probe.lengths = at::tensor(lengths, at::kLong);
  xray::MeasureOptions options;
  options.lags = {0, 2, 3, 4, 8};
  const Record both = xray::measure(probe, options)[0];

  std::vector<Record> alone;
  for (int64_t row = 0; row < 2; ++row) {
    xray::Probe one = probe;
    one.x = probe.x.slice(0, 0, lengths[row]).slice(1, row, row + 1);
    one.targets = probe.targets.slice(0, 0, lengths[row]).slice(1, row, row + 1);
    one.lengths = Tensor();
    alone.push_back(xray::measure(one, options)[0]);
  }
  for (size_t i = 0; i < options.lags.size(); ++i) {
    // The loss is the mean over the rows; the short one has no state four steps before its end.
    const bool has_both = options.lags[i] < 4;
    const double second = has_both ? alone[1].states[i].norm : 0;
    EXPECT_NEAR(both.states[i].norm, std::hypot(alone[0].states[i].norm, second) / 2, 1e-12);
    EXPECT_GT(both.states[i].norm, 0);
    if (!has_both) {
      EXPECT_EQ(alone[1].states[i].norm, 0);
    }
  }
}

TEST(XrayMeasure, TheCellsShareFallsAsWeightsGrowAndRisesWithDetach) {
  for (const uint64_t seed : {1, 2, 3}) {
    xray::MeasureOptions options;
    options.detach = {0, 0.25, 0.5, 1};
    std::vector<Record> smaller;
    for (const double scale : {0.5, 1.0, 2.0, 4.0}) {
      const auto records = xray::measure(xray::random_probe(32, 40, scale, seed), options);
      for (size_t i = 0; i < records.size(); ++i) {
        const double share = records[i].weights.cell_share;
        if (records[i].detach == 1) {
          EXPECT_EQ(share, 1) << "nothing goes through h";
          continue;
        }
        if (!smaller.empty()) {
          EXPECT_LT(share, smaller[i].weights.cell_share) << scale;
        }
        if (i > 0) {
          EXPECT_GT(share, records[i - 1].weights.cell_share) << scale;
        }
      }
      smaller = records;
    }
  }
}

TEST(XrayMeasure, DetachScalesOrderKByThePowerKOfWhatIsKept) {
  xray::MeasureOptions options;
  options.detach = {0, 0.25};
  const auto records = xray::measure(xray::random_probe(8, 12, 2.0, 1), options);
  for (int k = 0; k <= 3; ++k) {
    const double plain = records[0].weights.by_order[k];
    EXPECT_NEAR(records[1].weights.by_order[k], std::pow(0.75, k) * plain, 1e-12 * plain);
  }
}

TEST(XrayRecord, IsReadBackAndWhatIsNotFiniteIsNull) {
  Record record = xray::measure(xray::random_probe(4, 6, 1.0, 1), {})[0];
  record.epoch = 10;
  record.update = 1280;
  record.weights =
      xray::make_split(1, {1, std::numeric_limits<double>::infinity(), 0.5, 0.25, 0.125});
  const std::string line = xray::to_json(record);
  EXPECT_NE(line.find(R"({"epoch":10,"update":1280,"weight_scale":null,"detach":0.0,"steps":6,)"
                      R"("orders":["0","1","2","3","rest"],"weights":{"norm":)"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find(R"("states":{"lags":[0,1,2,4,5],"norm":[)"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("by_order":[1.0,null,0.5,0.25,0.125],"cell_share":null)"),
            std::string::npos)
      << line;
  const Record again = xray::parse_record(line, "xray.jsonl:1");
  EXPECT_EQ(again.epoch, record.epoch);
  EXPECT_EQ(again.lags, record.lags);
  EXPECT_TRUE(std::isnan(again.weights.by_order[1]));
  EXPECT_NEAR(again.states[2].by_order[1], record.states[2].by_order[1], 1e-5);
  for (const char* bad :
       {"{}", "[]",
        R"({"detach":0,"steps":1,"orders":["0"],"weights":)"
        R"({"norm":1,"by_order":[1,2],"cell_share":1},"states":{"lags":[],"norm":[],)"
        R"("by_order":[],"cell_share":[]}})"}) {
    EXPECT_THROW(xray::parse_record(bad, "x:1"), std::runtime_error) << bad;
  }
}

}  // namespace
}  // namespace hdetach
