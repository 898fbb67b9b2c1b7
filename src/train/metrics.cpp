#include "train/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/json_object.h"

namespace hdetach::train {

using Json = nlohmann::ordered_json;  // writes null for a number that is not finite

std::string to_json(const EpochMetrics& metrics) {
  Json json;
  json["epoch"] = metrics.epoch;
  json["update"] = metrics.update;
  json["train_loss"] = metrics.train_loss;
  json["valid_loss"] = metrics.valid_loss;
  json["valid_accuracy"] = metrics.valid_accuracy;
  json["grad_norm_mean"] = metrics.grad_norm_mean;
  json["grad_norm_max"] = metrics.grad_norm_max;
  json["clipped"] = metrics.clipped;
  json["skipped"] = metrics.skipped;
  json["detach"] = metrics.detach;
  json["seconds"] = metrics.seconds;
  json["updates_per_second"] = metrics.updates_per_second;
  return json.dump();
}

EpochMetrics parse_metrics(const std::string& line, const std::string& place) {
  const JsonObject json(line, place);
  EpochMetrics metrics;
  metrics.epoch = json.whole("epoch");
  metrics.update = json.whole("update");
  metrics.train_loss = json.number("train_loss");
  metrics.valid_loss = json.number("valid_loss");
  metrics.valid_accuracy = json.number("valid_accuracy");
  metrics.grad_norm_mean = json.number("grad_norm_mean");
  metrics.grad_norm_max = json.number("grad_norm_max");
  metrics.clipped = json.number("clipped");
  metrics.skipped = json.whole("skipped");
  metrics.detach = json.number("detach");
  metrics.seconds = json.number("seconds");
  metrics.updates_per_second = json.number("updates_per_second");
  if (metrics.epoch < 1) json.fail("epochs count from 1");
  if (std::isnan(metrics.valid_accuracy)) json.fail("valid_accuracy is not a number");
  return metrics;
}

std::string to_json(const RunResult& result) {
  Json json;
  json["status"] = result.status;
  json["epochs"] = result.epochs;
  json["updates"] = result.updates;
  json["best_epoch"] = result.best_epoch;
  json["best_valid_accuracy"] = result.best_valid_accuracy;
  if (result.test_accuracy) json["test_accuracy"] = *result.test_accuracy;
  json["seconds"] = result.seconds;
  json["message"] = result.message;
  return json.dump();
}

RunResult parse_result(const std::string& text, const std::string& place) {
  const JsonObject json(text, place);
  RunResult result;
  result.status = json.text("status");
  result.epochs = json.whole("epochs");
  result.updates = json.whole("updates");
  result.best_epoch = json.whole("best_epoch");
  result.best_valid_accuracy = json.number("best_valid_accuracy");
  if (json.has("test_accuracy")) result.test_accuracy = json.number("test_accuracy");
  result.seconds = json.number("seconds");
  result.message = json.text("message");
  return result;
}

}  // namespace hdetach::train
