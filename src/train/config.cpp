#include "train/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hdetach::train {
namespace {

constexpr double kMost = 1e9;  // of every count: products of a few stay far from overflow

const std::vector<Field> kCopyFields = {
    {"delay", "Steps from the last symbol shown to the first repeated (the paper's T)",
     &Config::delay, 1, 1e6},
    {"symbols", "Symbols to repeat; the paper has 10", &Config::symbols, 1, 20},
    {"encoding",
     "Input: scalar, one raw number a step as the released code, or onehot",
     &Config::encoding,
     0,
     0,
     {"scalar", "onehot"}},
};

const std::vector<Field> kMnistFields = {
    {"data", "Folder of the four IDX files, gzipped or not", &Config::data},
    {"permute", "Permute the pixels, all images alike", &Config::permute},
    {"permutation-seed", "Seed of that permutation, independent of --seed",
     &Config::permutation_seed, 0, kMost},
};

const std::vector<Field> kCaptionFields = {
    {"data", "Folder of captions and image features, or generated: a small made-up set",
     &Config::data},
    {"model",
     "Show and Tell, or Soft Attention",
     &Config::model,
     0,
     0,
     {"show-tell", "soft-attention"}},
    {"train-size", "Training images; 0: all", &Config::train_size, 0, kMost},
    {"valid-size", "Validation images; 0: all", &Config::valid_size, 0, kMost},
    {"most-words", "Words of a caption, at most; longer ones are cut", &Config::most_words, 1, 1e3},
    {"rare-words", "Words seen no more often than this are unknown", &Config::rare_words, 0, kMost},
    {"captions", "Captions of each image in a minibatch", &Config::captions, 1, 1e3},
    {"batch", "Images in a minibatch, each with --captions captions", &Config::batch, 1, 1e6},
    {"embedding", "Numbers that stand for a word", &Config::embedding, 1, 65536},
    {"dropout", "Part of the LSTM's output that is dropped in training", &Config::dropout, 0, 0.99},
    {"clamp", "Largest magnitude of each number of the gradient; 0: any", &Config::clamp, 0},
    {"updates-per-epoch", "Updates between two validations; 0: one pass over the images",
     &Config::updates_per_epoch, 0, kMost},
    {"patience", "End after so many epochs without a better CIDEr; 0: never", &Config::patience, 0,
     kMost},
    {"beam", "Width of the search that captions the test images", &Config::beam, 1, 1e3},
    {"wordnet", "Folder of METEOR's or WordNet's files; without it METEOR is left out",
     &Config::wordnet},
};

const std::vector<Field> kCommonFields = {
    {"train-size", "Training sequences", &Config::train_size, 1, kMost},
    {"valid-size", "Validation sequences", &Config::valid_size, 1, kMost},
    {"hidden", "Units of each layer", &Config::hidden, 1, 65536},
    {"layers", "Layers of the LSTM", &Config::layers, 1, 64},
    {"init",
     "Initial weights: uniform, or chrono (Tallec and Ollivier 2018)",
     &Config::init,
     0,
     0,
     {"uniform", "chrono"}},
    {"detach", "Probability that a step is blocked, or the damping", &Config::detach, 0, 1},
    {"path",
     "State whose gradient is steered: hidden, or cell (the paper's c-detach)",
     &Config::path,
     0,
     0,
     {"hidden", "cell"}},
    {"mode",
     "detach blocks steps at random, damp scales every step by 1 - detach",
     &Config::mode,
     0,
     0,
     {"detach", "damp"}},
    {"layer-draw",
     "One draw for all layers (joint) or one for each (separate)",
     &Config::layer_draw,
     0,
     0,
     {"joint", "separate"}},
    {"anneal-epochs", "N > 0: the last N-1 epochs train plain (the released code: 40)",
     &Config::anneal_epochs, 0, kMost},
    {"epochs", "Epochs to train", &Config::epochs, 1, kMost},
    {"updates-per-epoch", "Updates between two validations", &Config::updates_per_epoch, 1, kMost},
    {"batch", "Sequences in a minibatch", &Config::batch, 1, 1e6},
    {"lr", "Learning rate of Adam", &Config::lr, 0, 1e3},
    {"clip", "Largest global gradient norm; 0 turns clipping off", &Config::clip, 0},
    {"stop-at", "End once the validation accuracy (0 to 1) reaches this; 0: never",
     &Config::stop_at, 0, 1},
    {"stop-epochs", "Epochs in a row that must reach --stop-at", &Config::stop_epochs, 1, kMost},
    {"on-diverge",
     "When a loss or gradient is not finite: stop, or continue without that update",
     &Config::on_diverge,
     0,
     0,
     {"stop", "continue"}},
    {"xray-every", "Record where the gradient flows every so many epochs, in xray.jsonl; 0: never",
     &Config::xray_every, 0, kMost},
    {"seed", "Seed of data, initial weights, minibatches and detach draws", &Config::seed, 0,
     kMost},
    {"device", "Where to train: cpu, or cuda (a GPU)", &Config::device, 0, 0, {"cpu", "cuda"}},
};

// A task's own fields, then the common ones. A common field that a task has of its own is the
// task's, and captioners have one layer whose hidden path is steered.
std::vector<Field> joined(const std::vector<Field>& own,
                          const std::vector<std::string>& lacks = {}) {
  std::vector<Field> all = own;
  for (const Field& field : kCommonFields) {
    const auto same = [&](const Field& other) { return std::string(other.name) == field.name; };
    const bool lacking = std::find(lacks.begin(), lacks.end(), field.name) != lacks.end();
    if (!lacking && std::none_of(own.begin(), own.end(), same)) all.push_back(field);
  }
  return all;
}

// The rule of a field, as the end of a message.
std::string rule(const Field& field) {
  if (std::holds_alternative<bool Config::*>(field.member)) return "must be true or false";
  if (std::holds_alternative<std::string Config::*>(field.member)) {
    std::string names;
    for (const std::string& choice : field.choices) names += (names.empty() ? "" : ", ") + choice;
    return field.choices.empty() ? "must be a text that is not empty" : "must be one of " + names;
  }
  const char* kind =
      std::holds_alternative<int64_t Config::*>(field.member) ? "a whole number" : "";
  const std::string range = std::isinf(field.most)
                                ? fmt::format("{:.10g} or more", field.least)
                                : fmt::format("in {:.10g} to {:.10g}", field.least, field.most);
  return fmt::format("must be {}{}{}", kind, *kind ? " " : "", range);
}

[[noreturn]] void refuse(const Field& field, const std::string& value) {
  throw ConfigError(fmt::format("{} is {}; it {}", field.name, value, rule(field)));
}

bool in_range(const Field& field, double value) {  // NaN is not
  return value >= field.least && value <= field.most && std::isfinite(value);
}

// Sets the field to a value of its own type.
struct Setter {
  Config& config;
  const Field& field;
  const std::string& shown;  // the value as the user wrote it

  void operator()(bool value) const {
    if (auto* member = std::get_if<bool Config::*>(&field.member)) {
      config.*(*member) = value;
    } else {
      refuse(field, shown);
    }
  }
  void operator()(int64_t value) const {
    if (auto* member = std::get_if<int64_t Config::*>(&field.member)) {
      if (!in_range(field, static_cast<double>(value))) refuse(field, shown);
      config.*(*member) = value;
    } else {
      (*this)(static_cast<double>(value));
    }
  }
  void operator()(double value) const {
    auto* member = std::get_if<double Config::*>(&field.member);
    if (member == nullptr || !in_range(field, value)) refuse(field, shown);
    config.*(*member) = value;
  }
  void operator()(const std::string& value) const {
    auto* member = std::get_if<std::string Config::*>(&field.member);
    const auto& choices = field.choices;
    const bool known = choices.empty()
                           ? !value.empty()
                           : std::find(choices.begin(), choices.end(), value) != choices.end();
    if (member == nullptr || !known) refuse(field, shown);
    config.*(*member) = value;
  }
};

// How a value of a file looks in a message.
std::string shown(const toml::Value& value) {
  if (auto* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  if (auto* whole = std::get_if<int64_t>(&value.data)) return fmt::format("{}", *whole);
  if (auto* real = std::get_if<double>(&value.data)) return toml::number(*real);
  if (auto* string = std::get_if<std::string>(&value.data)) return toml::quoted(*string);
  return std::holds_alternative<toml::Array>(value.data) ? "a list" : "a table";
}

template <class T>
bool parse_number(const std::string& text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && next == end;
}

// Where the data lies is no part of a run.
bool is_place(const Field& field) {
  const std::string_view name = field.name;
  return name == "data" || name == "wordnet";
}

}  // namespace

Config default_config(const std::string& task) {
  Config config;
  config.task = task;
  if (task == "mnist") {
    config.train_size = 50000;
    config.valid_size = 10000;
    config.hidden = 100;
    config.epochs = 200;
    config.updates_per_epoch = 500;
  }
  if (task == "caption") {
    config.data = "data/coco";
    config.train_size = config.valid_size = 0;
    config.hidden = 512;
    config.epochs = 30;
    config.updates_per_epoch = 0;
    config.batch = 10;
    config.lr = 1e-4;
    config.clip = 0;
  }
  return config;
}

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = {"copy", "mnist", "caption"};
  return names;
}

const std::vector<Field>& fields(const std::string& task) {
  static const std::vector<Field> copy = joined(kCopyFields), mnist = joined(kMnistFields),
                                  caption = joined(kCaptionFields,
                                                   {"layers", "init", "path", "layer-draw",
                                                    "stop-at", "stop-epochs"});
  return task == "mnist" ? mnist : task == "caption" ? caption : copy;
}

const Field* find_field(const std::string& task, const std::string& name) {
  for (const Field& field : fields(task)) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

void set(Config& config, const Field& field, const std::string& text) {
  const Setter setter{config, field, text};
  if (std::holds_alternative<bool Config::*>(field.member)) {
    if (text != "true" && text != "false") refuse(field, text);
    return setter(text == "true");
  }
  if (std::holds_alternative<std::string Config::*>(field.member)) {
    // What config.toml could not give back is refused before it is written.
    if (!toml::is_utf8(text)) {
      throw ConfigError(
          fmt::format("{} has bytes that are not UTF-8; use another name", field.name));
    }
    return setter(text);
  }
  if (std::holds_alternative<int64_t Config::*>(field.member)) {
    int64_t value = 0;
    if (!parse_number(text, value)) refuse(field, text);
    return setter(value);
  }
  double value = 0;
  if (!parse_number(text, value)) refuse(field, text);
  setter(value);
}

void set(Config& config, const Field& field, const toml::Value& value) {
  const std::string text = shown(value);
  const Setter setter{config, field, text};
  std::visit(
      [&](const auto& data) {
        using T = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<T, toml::Array> || std::is_same_v<T, toml::Table>) {
          refuse(field, text);
        } else {
          setter(data);
        }
      },
      value.data);
}

std::string text(const Config& config, const Field& field) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = config.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
        if constexpr (std::is_same_v<T, std::string>) return value;
        return fmt::format("{}", value);
      },
      field.member);
}

std::string differences(const Config& now, const Config& before) {
  if (now.task != before.task) return fmt::format("task {} (now {})", before.task, now.task);
  std::string out;
  for (const Field& field : fields(now.task)) {
    const std::string name = field.name, value = text(now, field), was = text(before, field);
    if (is_place(field) || value == was) continue;
    out += fmt::format("{}{} {} (now {})", out.empty() ? "" : ", ", name, was, value);
  }
  return out;
}

void check(const Config& config) {
  if (config.lr <= 0) throw ConfigError("lr is 0; it must be above 0");
  if (config.stop_epochs > 1 && config.stop_at == 0) {
    throw ConfigError(
        fmt::format("stop-epochs is {} but stop-at is 0, which never stops; set stop-at too",
                    config.stop_epochs));
  }
  if (config.xray_every > 0 && config.task == "caption" && config.model == "soft-attention") {
    throw ConfigError(
        fmt::format("xray-every is {} but model is soft-attention, whose attention reads h too, a "
                    "path that the x-ray does not follow; set xray-every 0 or model show-tell",
                    config.xray_every));
  }
}

namespace {

// Those of the fields that `keep` is true for.
template <class Keep>
std::string toml_of(const Config& config, const Keep& keep) {
  std::string out = fmt::format("task = {}\n", toml::quoted(config.task));
  for (const Field& field : fields(config.task)) {
    if (!keep(field)) continue;
    std::string value = text(config, field);
    if (std::holds_alternative<std::string Config::*>(field.member)) value = toml::quoted(value);
    if (auto* real = std::get_if<double Config::*>(&field.member)) {
      value = toml::number(config.*(*real));
    }
    out += fmt::format("{} = {}\n", field.name, value);
  }
  return out;
}

}  // namespace

std::string to_toml(const Config& config) {
  return toml_of(config, [](const Field&) { return true; });
}

std::string lasting_toml(const Config& config) {
  return toml_of(config, [](const Field& field) {
    return !is_place(field) && std::string_view(field.name) != "epochs";
  });
}

void apply(Config& config, const toml::Table& table, const std::string& name) {
  const auto fail = [&](const toml::Value& value, const std::string& message) {
    throw toml::Error(fmt::format("{}:{}: {}", name, value.line, message));
  };
  for (const toml::Entry& entry : table) {
    if (entry.key == "task") continue;
    const Field* field = find_field(config.task, entry.key);
    if (field == nullptr) {
      fail(entry.value, fmt::format("task {} has no setting {}; hdetach train {} --help lists them",
                                    config.task, toml::quoted(entry.key), config.task));
    }
    try {
      set(config, *field, entry.value);
    } catch (const ConfigError& error) {
      fail(entry.value, error.what());
    }
  }
}

Config parse_config(const std::string& text, const std::string& name) {
  const toml::Table table = toml::parse(text, name);
  const toml::Value* task = toml::find(table, "task");
  const std::string* value = task ? std::get_if<std::string>(&task->data) : nullptr;
  const std::vector<std::string>& names = task_names();
  if (value == nullptr || std::find(names.begin(), names.end(), *value) == names.end()) {
    throw toml::Error(fmt::format("{}:{}: task must be \"copy\", \"mnist\" or \"caption\"", name,
                                  task ? task->line : 1));
  }
  Config config = default_config(*value);
  apply(config, table, name);
  try {
    check(config);
  } catch (const ConfigError& error) {
    throw toml::Error(fmt::format("{}: {}", name, error.what()));
  }
  return config;
}

}  // namespace hdetach::train
