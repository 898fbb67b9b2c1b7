#include "train/checkpoint.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "train/seal.h"

namespace hdetach::train {
namespace {

// Arrays to be written. Tensors may live on a GPU; their copies last as long as this.
class Arrays {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    copies_.push_back(tensor.cpu());
    views_.push_back({name, "F32", tensor.sizes().vec(), copies_.back().data_ptr<float>()});
  }
  void add(safetensors::View view) { views_.push_back(std::move(view)); }
  std::string serialize(const safetensors::Metadata& metadata) const {
    return sealed(views_, metadata);
  }

 private:
  std::vector<at::Tensor> copies_;
  std::vector<safetensors::View> views_;
};

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
  const at::Tensor loaded = at::empty(tensor.sizes());
  std::memcpy(loaded.data_ptr<float>(), array.data, array.size);
  const c10::NoGradGuard no_grad;
  tensor.copy_(loaded);
}

// The counters as doubles: whole numbers stay exact below 2^53.
template <class Progress>
auto counters(Progress& p) {
  return std::tie(p.update, p.epoch, p.loss_sum, p.norm_sum, p.norm_max, p.clipped, p.skipped,
                  p.best_epoch, p.best_score, p.epochs_at_goal, p.seconds, p.epoch_seconds);
}
constexpr int64_t kCounters = 12;

// What no run can have counted would be trained on for ever, or not at all.
void check_counters(const Progress& p, const double (&saved)[kCounters], int64_t adam_steps,
                    const RunState& run, const std::string& name) {
  const int64_t of_epoch = p.epoch_updates;
  const double epochs = static_cast<double>(run.config().epochs);
  const double updates = epochs * static_cast<double>(of_epoch);
  const auto [update, epoch, loss_sum, norm_sum, norm_max, clipped, skipped, best_epoch, best_score,
              epochs_at_goal, seconds, epoch_seconds] = saved;
  const auto check = [&](const char* what, double value, double least, double most, bool whole) {
    if (value >= least && value <= most && (!whole || value == std::floor(value))) return;
    throw std::runtime_error(
        fmt::format("{}: {} is {}, which this run cannot have counted; the file is damaged, or of "
                    "another run: restore it from a copy, or train again into another folder",
                    name, what, value));
  };
  constexpr double kMost = std::numeric_limits<double>::max();
  check("epoch", epoch, 0, epochs, true);
  const double begin = epoch * static_cast<double>(of_epoch);
  check("update", update, begin, std::min(updates, begin + static_cast<double>(of_epoch)), true);
  check("skipped", skipped, 0, update - begin, true);
  check("clipped", clipped, 0, update - begin - skipped, true);
  check("best epoch", best_epoch, 0, epoch, true);
  check("epochs at goal", epochs_at_goal, 0, epoch, true);
  check("best score", best_score, -1, kMost, false);
  check("sum of losses", loss_sum, -kMost, kMost, false);
  check("sum of gradient norms", norm_sum, 0, kMost, false);
  check("largest gradient norm", norm_max, 0, kMost, false);
  check("seconds", seconds, 0, kMost, false);
  check("seconds of the epoch", epoch_seconds, 0, kMost, false);
  check("steps of Adam", static_cast<double>(adam_steps), 0, update, true);
}

constexpr char kData[] = "data";  // the note of what the run is trained on

void check_data(const RunState& run, const safetensors::Metadata& notes, const std::string& name) {
  const auto trained_on = notes.find(kData);
  if (trained_on == notes.end() || trained_on->second == run.data_checksum()) return;
  throw std::runtime_error(
      fmt::format("{} was trained on other data than {} has now; put back the data it began with, "
                  "or train into another folder",
                  name, run.config().data));
}

}  // namespace

std::string weights_file(const std::vector<NamedTensor>& parameters, safetensors::Metadata notes) {
  Arrays arrays;
  for (const NamedTensor& parameter : parameters) arrays.add(parameter.name, parameter.tensor);
  notes["format"] = "pt";
  return arrays.serialize(notes);
}

void load_weights(const std::vector<NamedTensor>& parameters, std::string bytes,
                  const std::string& name) {
  const safetensors::File file = parse_sealed(std::move(bytes), name);
  for (const NamedTensor& parameter : parameters) {
    load(file, name, parameter.name, parameter.tensor);
  }
}

std::string state_file(RunState& run, safetensors::Metadata notes) {
  Arrays arrays;
  const auto& parameters = run.parameters();
  const auto& m = run.adam().first_moments();
  const auto& v = run.adam().second_moments();
  for (size_t i = 0; i < parameters.size(); ++i) {
    arrays.add(parameters[i].name, parameters[i].tensor);
    arrays.add("adam.m." + parameters[i].name, m[i]);
    arrays.add("adam.v." + parameters[i].name, v[i]);
  }
  const int64_t steps = run.adam().steps();
  arrays.add({"adam.steps", "I64", {}, &steps});
  const auto state = run.generator_state();
  const uint64_t generator[2] = {state.seed, state.drawn};
  arrays.add({"generator", "U64", {2}, generator});
  std::vector<double> progress;
  std::apply([&](const auto&... values) { (progress.push_back(static_cast<double>(values)), ...); },
             counters(std::as_const(run.progress)));
  arrays.add({"progress", "F64", {kCounters}, progress.data()});
  if (!run.data_checksum().empty()) notes[kData] = run.data_checksum();
  return arrays.serialize(notes);
}

safetensors::Metadata load_state(RunState& run, std::string bytes, const std::string& name) {
  const safetensors::File file = parse_sealed(std::move(bytes), name);
  const auto& parameters = run.parameters();
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
  run.set_generator_state({generator[0], generator[1]});
  double progress[kCounters];
  std::memcpy(progress, found(file, name, "progress", "F64", {kCounters}).data, sizeof(progress));
  check_counters(run.progress, progress, steps, run, name);
  check_data(run, file.metadata, name);
  const double* next = progress;
  const auto read = [&](auto& value) {
    value = static_cast<std::decay_t<decltype(value)>>(*next++);
  };
  std::apply([&](auto&... values) { (read(values), ...); }, counters(run.progress));
  return file.metadata;
}

}  // namespace hdetach::train
