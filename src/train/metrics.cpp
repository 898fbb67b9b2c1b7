#include "train/metrics.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/json_object.h"

namespace hdetach::train {

namespace {

using Json = nlohmann::ordered_json;  // writes null for a number that is not finite
using Scores = std::map<std::string, double>;

Json object_of(const Scores& scores) {
  Json json = Json::object();
  for (const auto& [name, value] : scores) json[name] = value;
  return json;
}

// Absent: none.
Scores scores_of(const JsonObject& json, const char* key) {
  Scores scores;
  if (!json.has(key)) return scores;
  for (const auto& [name, value] : json.object(key).items()) {
    if (!value.is_number()) json.fail(std::string(key) + "." + name + " is not a number");
    scores.emplace(name, value.get<double>());
  }
  return scores;
}

}  // namespace

std::string to_json(const EpochMetrics& metrics) {
  Json json;
  json["epoch"] = metrics.epoch;
  json["update"] = metrics.update;
  json["train_loss"] = metrics.train_loss;
  json["valid_loss"] = metrics.valid_loss;
  if (metrics.caption_scores.empty()) {
    json["valid_accuracy"] = metrics.valid_measure;
  } else {
    json["valid_cider"] = metrics.valid_measure;
    json["valid_scores"] = object_of(metrics.caption_scores);
  }
  json["grad_norm_mean"] = metrics.grad_norm_mean;
  json["grad_norm_max"] = metrics.grad_norm_max;
  json["clipped"] = metrics.clipped;
  json["skipped"] = metrics.skipped;
  json["detach"] = metrics.detach;
  json["seconds"] = metrics.seconds;
  json["updates_per_second"] = metrics.updates_per_second;
  for (const SampleCaption& sample : metrics.samples) {
    json["samples"].push_back({{"image_id", sample.image}, {"caption", sample.caption}});
  }
  return json.dump();
}

EpochMetrics parse_metrics(const std::string& line, const std::string& place) {
  const JsonObject json(line, place);
  EpochMetrics metrics;
  metrics.epoch = json.whole("epoch");
  metrics.update = json.whole("update");
  metrics.train_loss = json.number("train_loss");
  metrics.valid_loss = json.number("valid_loss");
  const char* const measure = json.has("valid_cider") ? "valid_cider" : "valid_accuracy";
  metrics.valid_measure = json.number(measure);
  metrics.caption_scores = scores_of(json, "valid_scores");
  metrics.grad_norm_mean = json.number("grad_norm_mean");
  metrics.grad_norm_max = json.number("grad_norm_max");
  metrics.clipped = json.number("clipped");
  metrics.skipped = json.whole("skipped");
  metrics.detach = json.number("detach");
  metrics.seconds = json.number("seconds");
  metrics.updates_per_second = json.number("updates_per_second");
  if (metrics.epoch < 1) json.fail("epochs count from 1");
  if (std::isnan(metrics.valid_measure)) json.fail(std::string(measure) + " is not a number");
  if (json.has("samples")) {
    for (const nlohmann::json& entry : json.list("samples")) {
      const JsonObject sample(entry, place);
      metrics.samples.push_back({sample.whole("image_id"), sample.text("caption")});
    }
  }
  return metrics;
}

std::string to_json(const RunResult& result) {
  Json json;
  json["status"] = result.status;
  json["epochs"] = result.epochs;
  json["updates"] = result.updates;
  json["best_epoch"] = result.best_epoch;
  const bool captions = result.measure_is_cider;
  json[captions ? "best_valid_cider" : "best_valid_accuracy"] = result.best_valid_measure;
  if (result.test_measure) json[captions ? "test_cider" : "test_accuracy"] = *result.test_measure;
  if (!result.test_caption_scores.empty()) {
    json["test_scores"] = object_of(result.test_caption_scores);
  }
  json["seconds"] = result.seconds;
  json["message"] = result.message;
  if (!result.notes.empty()) json["notes"] = result.notes;
  return json.dump();
}

RunResult parse_result(const std::string& text, const std::string& place) {
  const JsonObject json(text, place);
  RunResult result;
  result.status = json.text("status");
  if (const auto& s = result.status; s != "finished" && s != "stopped-early" && s != "diverged") {
    throw std::runtime_error(fmt::format(
        "{}: status is \"{}\", not finished, stopped-early or diverged", place, result.status));
  }
  result.epochs = json.whole("epochs");
  result.updates = json.whole("updates");
  result.best_epoch = json.whole("best_epoch");
  const bool captions = result.measure_is_cider = json.has("best_valid_cider");
  result.best_valid_measure = json.number(captions ? "best_valid_cider" : "best_valid_accuracy");
  const char* const test = captions ? "test_cider" : "test_accuracy";
  if (json.has(test)) result.test_measure = json.number(test);
  result.test_caption_scores = scores_of(json, "test_scores");
  result.seconds = json.number("seconds");
  result.message = json.text("message");
  if (json.has("notes")) {
    const JsonObject notes(json.object("notes"), place);
    for (const auto& [name, value] : json.object("notes").items()) {
      result.notes[name] = notes.text(name.c_str());
    }
  }
  return result;
}

}  // namespace hdetach::train
