#include "cli/train_output.h"

#include <fmt/core.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "cli/version.h"
#include "hdetach/backend.h"
#include "kernels/cuda/device.h"
#include "report/summary.h"

namespace hdetach::cli {

using train::Config;

TrainPrinter::TrainPrinter(const Config& config, bool quiet, FILE* stream)
    : config_(config), quiet_(quiet), stream_(stream), line_(stream, LiveLine::Elsewhere::kLines) {}

void TrainPrinter::started(const train::Progress& progress, bool resumed) {
  first_update_ = progress.update;
  first_seconds_ = progress.seconds;
  if (progress.epoch > 0) accuracy_ = fmt::format("best {:.2f}%", 100 * progress.best_accuracy);
  if (quiet_ || !resumed) return;
  fmt::print(stream_, "going on at update {} (epoch {} of {})\n", progress.update,
             progress.epoch + 1, config_.epochs);
}

void TrainPrinter::updated(const train::Progress& progress, const train::Update& update) {
  if (!quiet_ && line_.due()) line_.show(text(progress, fmt::format("loss {:.4f}", update.loss)));
}

void TrainPrinter::validating(const train::Progress& progress) {
  if (!quiet_ && line_.due()) line_.show(text(progress, "validating"));
}

void TrainPrinter::finished_epoch(const train::EpochMetrics& metrics, bool best) {
  accuracy_ = fmt::format("accuracy {:.2f}%", 100 * metrics.valid_accuracy);
  if (quiet_) return;
  if (best || metrics.epoch == config_.epochs) {
    line_.clear();
    fmt::print(stream_, "epoch {:>4}  loss {:.4f}  validation loss {:.4f}  accuracy {:.2f}%{}\n",
               metrics.epoch, metrics.train_loss, metrics.valid_loss, 100 * metrics.valid_accuracy,
               best ? "  best so far" : "");
    std::fflush(stream_);
  }
}

std::string TrainPrinter::text(const train::Progress& progress, const std::string& now) const {
  const int64_t within = progress.update - progress.epoch * config_.updates_per_epoch;
  std::string out = fmt::format("epoch {}/{}  update {}/{}  {}", progress.epoch + 1, config_.epochs,
                                within, config_.updates_per_epoch, now);
  if (!accuracy_.empty()) out += "  " + accuracy_;
  // Nothing is known of the speed before the first update of this process.
  const double updates = static_cast<double>(progress.update - first_update_);
  const double rate = updates / (progress.seconds - first_seconds_);
  if (updates == 0) return out;
  const int64_t left = config_.epochs * config_.updates_per_epoch - progress.update;
  return out + fmt::format("  {:.1f} updates/s  {} left", rate,
                           report::duration(static_cast<double>(left) / rate));
}

void print_result(const train::RunResult& result, const std::string& out, FILE* stream) {
  fmt::print(stream,
             "{} after {} epochs ({} updates, {}): best validation accuracy {:.2f}% at epoch {}\n",
             result.message, result.epochs, result.updates, report::duration(result.seconds),
             100 * result.best_valid_accuracy, result.best_epoch);
  if (result.test_accuracy) {
    fmt::print(stream, "test accuracy of that model: {:.2f}%\n", 100 * *result.test_accuracy);
  }
  fmt::print(stream, "run folder: {}\n", out);
}

void print_saved(const std::string& task, const std::string& out, FILE* stream) {
  fmt::print(stream,
             "saved; go on with: hdetach train {} --config {}/config.toml --out {} --resume\n",
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
