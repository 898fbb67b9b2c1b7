#include "train/xray_run.h"

#include <fmt/core.h>

#include <utility>
#include <variant>

#include "train/caption_trainer.h"
#include "train/make_task.h"
#include "train/run_folder.h"
#include "train/sequence_run.h"
#include "xray/probes.h"

namespace hdetach::train {
namespace {

namespace fs = std::filesystem;

xray::Probe probe_of(Config config, const fs::path& run, bool best) {
  config.device = "cpu";  // the x-ray is taken there
  const auto load = best ? load_best : load_last;
  const TaskData data = make_data(config);
  if (const auto* task = std::get_if<tasks::Task>(&data)) {
    const SequenceClassifier model = make_model(config, *task->valid);
    load(model.parameters(), run);
    return xray::classifier_probe(model.parameters(), *task->valid);
  }
  const auto& captions = *std::get<std::shared_ptr<const tasks::CaptionData>>(data);
  const auto model = make_caption_model(config, captions.vocabulary.size(), *captions.features);
  load(model->parameters(), run);
  return xray::show_tell_probe(model->parameters(), *captions.features, captions.valid,
                               config.captions);
}

xray::MeasureOptions measure_options(const XrayOptions& options, int64_t steps) {
  for (const int64_t lag : options.lags) {
    if (lag < steps) continue;
    throw LagError(
        fmt::format("lags has {}, but the sequences have {} steps; name lags below", lag, steps));
  }
  xray::MeasureOptions out;
  out.highest_order = options.highest_order;
  out.lags = options.lags;
  if (!options.detach.empty()) out.detach = options.detach;
  return out;
}

}  // namespace

std::vector<xray::Record> xray_run(const Config& config, const fs::path& run, bool best,
                                   const EpochMetrics* epoch, const XrayOptions& options) {
  if (config.task == "caption" && config.model == "soft-attention") {
    throw ConfigError(
        fmt::format("{} is a run of soft-attention, whose attention reads h too, a path that the "
                    "x-ray does not follow; name a run of copy, mnist or show-tell",
                    run.string()));
  }
  const xray::Probe probe = probe_of(config, run, best);
  xray::MeasureOptions measured = measure_options(options, probe.x.size(0));
  if (options.detach.empty()) measured.detach = {epoch != nullptr ? epoch->detach : config.detach};
  measured.cell_path = config.path == "cell";
  std::vector<xray::Record> records = xray::measure(probe, measured);
  for (xray::Record& record : records) {
    if (epoch == nullptr) break;
    record.epoch = epoch->epoch;
    record.update = epoch->update;
  }
  return records;
}

std::vector<xray::Record> xray_random(int64_t hidden, int64_t steps, double weight_scale,
                                      int64_t seed, const XrayOptions& options) {
  const xray::MeasureOptions measured = measure_options(options, steps);
  std::vector<xray::Record> records = xray::measure(
      xray::random_probe(hidden, steps, weight_scale, static_cast<uint64_t>(seed)), measured);
  for (xray::Record& record : records) record.weight_scale = weight_scale;
  return records;
}

}  // namespace hdetach::train
