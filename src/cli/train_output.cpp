#include "cli/train_output.h"

#include <fmt/core.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "cli/output.h"
#include "cli/version.h"
#include "hdetach/backend.h"
#include "kernels/cuda/device.h"
#include "report/summary.h"

namespace hdetach::cli {
namespace {

std::string measured(bool cider, double value) {
  return cider ? fmt::format("CIDEr {:.4f}", value) : fmt::format("accuracy {:.2f}%", 100 * value);
}

}  // namespace

using train::Config;

TrainPrinter::TrainPrinter(const Config& config, bool quiet, FILE* stream)
    : config_(config), quiet_(quiet), stream_(stream), line_(stream, LiveLine::Elsewhere::kLines) {}

void TrainPrinter::started(const train::Progress& progress, bool resumed) {
  first_update_ = progress.update;
  first_seconds_ = progress.seconds;
  if (progress.epoch > 0) measure_ = "best " + measured(is_captions(), progress.best_score);
  if (quiet_ || !resumed) return;
  print(stream_, "going on at update {} (epoch {} of {})\n", progress.update, progress.epoch + 1,
        config_.epochs);
}

void TrainPrinter::updated(const train::Progress& progress, const train::Update& update) {
  if (!quiet_ && line_.due()) line_.show(text(progress, fmt::format("loss {:.4f}", update.loss)));
}

void TrainPrinter::validating(const train::Progress& progress) {
  if (!quiet_ && line_.due()) line_.show(text(progress, "validating"));
}

void TrainPrinter::finished_epoch(const train::EpochMetrics& metrics, bool best) {
  measure_ = measured(is_captions(), metrics.valid_measure);
  if (quiet_) return;
  if (best || metrics.epoch == config_.epochs) {
    line_.clear();
    print(stream_, "epoch {:>4}  loss {:.4f}  validation loss {:.4f}  {}{}\n", metrics.epoch,
          metrics.train_loss, metrics.valid_loss, measure_, best ? "  best so far" : "");
    flush(stream_);
  }
}

std::string TrainPrinter::text(const train::Progress& progress, const std::string& now) const {
  const int64_t within = progress.update - progress.epoch * progress.epoch_updates;
  std::string out = fmt::format("epoch {}/{}  update {}/{}  {}", progress.epoch + 1, config_.epochs,
                                within, progress.epoch_updates, now);
  if (!measure_.empty()) out += "  " + measure_;
  // Nothing is known of the speed before the first update of this process.
  const double updates = static_cast<double>(progress.update - first_update_);
  const double rate = updates / (progress.seconds - first_seconds_);
  if (updates == 0) return out;
  const int64_t left = config_.epochs * progress.epoch_updates - progress.update;
  return out + fmt::format("  {:.1f} updates/s  {} left", rate,
                           report::duration(static_cast<double>(left) / rate));
}

void print_result(const train::RunResult& result, const std::string& out, FILE* stream) {
  print(stream, "{} after {} epochs ({} updates, {}): best validation {} at epoch {}\n",
        result.message, result.epochs, result.updates, report::duration(result.seconds),
        measured(result.measure_is_cider, result.best_valid_measure), result.best_epoch);
  if (result.test_measure) {
    print(stream, "test {} of that model\n",
          measured(result.measure_is_cider, *result.test_measure));
  }
  for (const auto& [name, value] : result.test_caption_scores) {
    print(stream, "  {:<8} {:.4f}\n", name, value);
  }
  print(stream, "run folder: {}\n", out);
}

void print_saved(const std::string& task, const std::string& out, FILE* stream) {
  print(stream, "saved; go on with: hdetach train {} --config {}/config.toml --out {} --resume\n",
        task, out, out);
}

std::string session_json(const Config& config, int threads) {
  nlohmann::ordered_json json;
  json["version"] = version();
  json["commit"] = commit();
  json["cpu"] = cpu_model();
  if (config.device == "cuda") {
    json["gpu"] = cuda_device_name();
  } else {
    json["kernel"] = active_kernel();
  }
  json["threads"] = threads;
  json["libtorch"] = TORCH_VERSION;
  return json.dump();
}

}  // namespace hdetach::cli
