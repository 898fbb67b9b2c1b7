#include "report/run_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "formats/files.h"

namespace hdetach::report {
namespace {

using nlohmann::json;

constexpr size_t kLateEpochs = 20;

// An object of a file, whose members are fetched with messages that name the place.
class Object {
 public:
  Object(const std::string& text, std::string place) : place_(std::move(place)) {
    try {
      content_ = json::parse(text);
    } catch (const json::exception&) {
      fail("not JSON");
    }
    if (!content_.is_object()) fail("not a JSON object");
  }
  Object(const json& content, std::string place) : content_(content), place_(std::move(place)) {
    if (!content_.is_object()) fail("not a JSON object");
  }

  int64_t whole(const char* key) const {
    const json& value = member(key);
    if (!value.is_number_integer()) fail(fmt::format("{} is not a whole number", key));
    return value.get<int64_t>();
  }

  double number(const char* key) const {  // NaN for null
    const json& value = member(key);
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) fail(fmt::format("{} is not a number", key));
    return value.get<double>();
  }

  std::string text(const char* key) const {
    const json& value = member(key);
    if (!value.is_string()) fail(fmt::format("{} is not a text", key));
    return value.get<std::string>();
  }

  const json& list(const char* key) const {
    const json& value = member(key);
    if (!value.is_array()) fail(fmt::format("{} is not a list", key));
    return value;
  }

  bool has(const char* key) const { return content_.contains(key) && !content_[key].is_null(); }

  [[noreturn]] void fail(const std::string& message) const {
    throw std::runtime_error(fmt::format("{}: {}", place_, message));
  }

 private:
  const json& member(const char* key) const {
    const auto it = content_.find(key);
    if (it == content_.end()) fail(fmt::format("{} is missing", key));
    return *it;
  }

  json content_;
  std::string place_;
};

std::vector<Epoch> read_epochs(const std::filesystem::path& path) {
  const std::string text = files::read(path);
  std::vector<Epoch> epochs;
  size_t start = 0;
  int line = 1;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1, ++line) {
    const Object object(text.substr(start, end - start), fmt::format("{}:{}", path.string(), line));
    const Epoch epoch = {object.whole("epoch"),           object.whole("update"),
                         object.number("train_loss"),     object.number("valid_loss"),
                         object.number("valid_accuracy"), object.number("grad_norm_max"),
                         object.number("seconds")};
    if (epoch.epoch < 1) object.fail("epochs count from 1");
    if (std::isnan(epoch.valid_accuracy)) object.fail("valid_accuracy is not a number");
    // A run that was cut off after this line and before its state was saved writes the epoch again.
    while (!epochs.empty() && epochs.back().epoch >= epoch.epoch) epochs.pop_back();
    epochs.push_back(epoch);
  }
  return epochs;
}

Result read_result(const std::filesystem::path& path) {
  const Object object(files::read(path), path.string() + ":1");
  Result result;
  result.status = object.text("status");
  if (object.has("message")) result.message = object.text("message");
  if (object.has("test_accuracy")) result.test_accuracy = object.number("test_accuracy");
  return result;
}

std::vector<Evaluation> read_evaluations(const std::filesystem::path& path) {
  const Object object(files::read(path), path.string() + ":1");
  std::vector<Evaluation> evaluations;
  for (const json& entry : object.list("accuracy")) {
    const Object point(entry, path.string() + ":1");
    evaluations.push_back({point.whole("delay"), point.number("accuracy")});
  }
  return evaluations;
}

}  // namespace

RunRecord read_run(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  RunRecord run;
  const fs::path config = folder / "config.toml", metrics = folder / "metrics.jsonl",
                 result = folder / "result.json", evaluations = folder / "eval.json";
  if (fs::exists(config)) run.config = train::parse_config(files::read(config), config.string());
  if (fs::exists(metrics)) run.epochs = read_epochs(metrics);
  if (fs::exists(result)) run.result = read_result(result);
  if (fs::exists(evaluations)) run.evaluations = read_evaluations(evaluations);
  return run;
}

bool diverged(const RunRecord& run) { return run.result && run.result->status == "diverged"; }

const Epoch* best_epoch(const RunRecord& run) {
  const Epoch* best = nullptr;
  for (const Epoch& epoch : run.epochs) {
    if (best == nullptr || epoch.valid_accuracy > best->valid_accuracy) best = &epoch;
  }
  return best;
}

std::optional<double> late_accuracy(const RunRecord& run) {
  if (run.epochs.empty()) return std::nullopt;
  const size_t count = std::min(kLateEpochs, run.epochs.size());
  std::vector<double> late;
  for (size_t i = run.epochs.size() - count; i < run.epochs.size(); ++i) {
    late.push_back(run.epochs[i].valid_accuracy);
  }
  std::sort(late.begin(), late.end());
  return (late[(count - 1) / 2] + late[count / 2]) / 2;
}

const Epoch* first_epoch_at(const RunRecord& run, double accuracy) {
  for (const Epoch& epoch : run.epochs) {
    if (epoch.valid_accuracy >= accuracy) return &epoch;
  }
  return nullptr;
}

std::optional<double> largest_grad_norm(const RunRecord& run) {
  std::optional<double> largest;
  for (const Epoch& epoch : run.epochs) {
    const double norm = std::isnan(epoch.grad_norm_max) ? std::numeric_limits<double>::infinity()
                                                        : epoch.grad_norm_max;
    largest = std::max(largest.value_or(0), norm);
  }
  return largest;
}

double seconds(const RunRecord& run) { return run.epochs.empty() ? 0 : run.epochs.back().seconds; }

std::optional<double> accuracy_at(const RunRecord& run, int64_t delay) {
  for (const Evaluation& evaluation : run.evaluations) {
    if (evaluation.delay == delay) return evaluation.accuracy;
  }
  return std::nullopt;
}

}  // namespace hdetach::report
