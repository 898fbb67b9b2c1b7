#include "train/checkpoint.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/safetensors.h"

namespace hdetach::train {
namespace {

safetensors::View view(const std::string& name, const at::Tensor& tensor) {
  return {name, "F32", tensor.sizes().vec(), tensor.data_ptr<float>()};
}

safetensors::Array found(const safetensors::File& file, const std::string& file_name,
                         const std::string& name, const std::string& dtype,
                         const std::vector<int64_t>& shape) {
  const auto list = [](const std::vector<int64_t>& sizes) {
    std::string text;
    for (const int64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ",", size);
    return "[" + text + "]";
  };
  const safetensors::Array* array = file.find(name);
  if (array == nullptr) {
    throw std::runtime_error(fmt::format("{}: there is no array {}", file_name, name));
  }
  if (array->dtype != dtype || array->shape != shape) {
    throw std::runtime_error(fmt::format("{}: {} is {} {}; the run needs {} {}", file_name, name,
                                         array->dtype, list(array->shape), dtype, list(shape)));
  }
  return *array;
}

void load(const safetensors::File& file, const std::string& file_name, const std::string& name,
          const at::Tensor& tensor) {
  const safetensors::Array array = found(file, file_name, name, "F32", tensor.sizes().vec());
  std::memcpy(tensor.data_ptr<float>(), array.data, array.size);
}

// The counters as doubles: whole numbers stay exact below 2^53.
template <class Progress>
auto counters(Progress& p) {
  return std::tie(p.update, p.epoch, p.loss_sum, p.norm_sum, p.norm_max, p.clipped, p.skipped,
                  p.best_epoch, p.best_accuracy, p.epochs_at_goal, p.seconds, p.epoch_seconds);
}
constexpr int64_t kCounters = 12;

}  // namespace

std::string weights_file(const SequenceClassifier& model) {
  std::vector<safetensors::View> views;
  for (const NamedTensor& parameter : model.parameters()) {
    views.push_back(view(parameter.name, parameter.tensor));
  }
  return safetensors::serialize(views, {{"format", "pt"}});
}

void load_weights(SequenceClassifier& model, std::string bytes, const std::string& name) {
  const safetensors::File file = safetensors::parse(std::move(bytes), name);
  for (const NamedTensor& parameter : model.parameters()) {
    load(file, name, parameter.name, parameter.tensor);
  }
}

std::string state_file(RunState& run) {
  std::vector<safetensors::View> views;
  const auto& parameters = run.model().parameters();
  const auto& m = run.adam().first_moments();
  const auto& v = run.adam().second_moments();
  for (size_t i = 0; i < parameters.size(); ++i) {
    views.push_back(view(parameters[i].name, parameters[i].tensor));
    views.push_back(view("adam.m." + parameters[i].name, m[i]));
    views.push_back(view("adam.v." + parameters[i].name, v[i]));
  }
  const int64_t steps = run.adam().steps();
  views.push_back({"adam.steps", "I64", {}, &steps});
  const auto state = run.model().lstm()->generator_state();
  const uint64_t generator[2] = {state.seed, state.drawn};
  views.push_back({"generator", "U64", {2}, generator});
  std::vector<double> progress;
  std::apply([&](const auto&... values) { (progress.push_back(static_cast<double>(values)), ...); },
             counters(std::as_const(run.progress)));
  views.push_back({"progress", "F64", {kCounters}, progress.data()});
  return safetensors::serialize(views, {});
}

void load_state(RunState& run, std::string bytes, const std::string& name) {
  const safetensors::File file = safetensors::parse(std::move(bytes), name);
  const auto& parameters = run.model().parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    load(file, name, parameters[i].name, parameters[i].tensor);
    load(file, name, "adam.m." + parameters[i].name, run.adam().first_moments()[i]);
    load(file, name, "adam.v." + parameters[i].name, run.adam().second_moments()[i]);
  }
  int64_t steps = 0;
  std::memcpy(&steps, found(file, name, "adam.steps", "I64", {}).data, sizeof(steps));
  run.adam().set_steps(steps);
  uint64_t generator[2];
  std::memcpy(generator, found(file, name, "generator", "U64", {2}).data, sizeof(generator));
  run.model().lstm()->set_generator_state({generator[0], generator[1]});
  double progress[kCounters];
  std::memcpy(progress, found(file, name, "progress", "F64", {kCounters}).data, sizeof(progress));
  const double* next = progress;
  const auto read = [&](auto& value) {
    value = static_cast<std::decay_t<decltype(value)>>(*next++);
  };
  std::apply([&](auto&... values) { (read(values), ...); }, counters(run.progress));
}

}  // namespace hdetach::train
