// What a training run is: one struct with commented defaults, and the table of its fields, which
// makes the flags of `hdetach train`, reads and writes config.toml, and checks every value.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "formats/toml.h"

namespace hdetach::train {

struct Config {
  std::string task = "copy";  // or mnist, or caption

  // copy
  int64_t delay = 100;              // the paper's T: blanks and delimiter between show and repeat
  int64_t symbols = 10;             // to be repeated
  std::string encoding = "scalar";  // one raw number a step, as the released code; or onehot

  // mnist
  std::string data = "data/mnist";  // folder of the four IDX files
  bool permute = false;             // one fixed permutation of the pixels
  int64_t permutation_seed = 1;     // independent of seed, so that runs can share it

  // caption
  std::string model = "show-tell";  // or soft-attention
  int64_t most_words = 16;          // of a caption; longer ones are cut
  int64_t rare_words = 5;           // words seen no more often are unknown
  int64_t captions = 5;             // of each image in a minibatch
  int64_t embedding = 512;          // numbers a word
  double dropout = 0.5;             // of the LSTM's output
  double clamp = 0.1;               // of each number of the gradient; 0 turns it off
  int64_t patience = 0;             // epochs without a better model that end the run; 0: any number
  int64_t beam = 2;                 // of the search that captions the test images
  std::string wordnet = "/usr/share/wordnet";  // for METEOR

  int64_t train_size = 100000;  // sequences, or images
  int64_t valid_size = 5000;

  int64_t hidden = 128;
  int64_t layers = 1;
  std::string init = "uniform";  // or chrono (Tallec and Ollivier 2018)

  double detach = 0.0;               // probability that a step is blocked, or the damping
  std::string path = "hidden";       // or cell, the paper's c-detach
  std::string mode = "detach";       // or damp
  std::string layer_draw = "joint";  // or separate: one draw for each layer
  int64_t anneal_epochs = 0;         // the last N-1 of the epochs train plain, as the released code

  int64_t epochs = 600;
  int64_t updates_per_epoch = 1000;
  int64_t batch = 100;              // sequences, or images
  double lr = 1e-3;                 // of Adam
  double clip = 1.0;                // global gradient norm; 0 turns clipping off
  double stop_at = 0.0;             // validation accuracy at which the run may end; 0: never
  int64_t stop_epochs = 1;          // epochs in a row that must reach stop_at
  std::string on_diverge = "stop";  // or continue: leave out updates that are not finite
  int64_t xray_every = 0;           // epochs between two x-rays of the gradient; 0: none
  int64_t seed = 1;                 // of data, initial weights, minibatches and detach draws
  std::string device = "cpu";       // or cuda
};

// The paper's settings of a task, one of task_names().
Config default_config(const std::string& task);

// A value that breaks a rule; the message starts with the field's name.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const std::vector<std::string>& task_names();

struct Field {
  const char* name;  // the key in config.toml; the flag is --name
  const char* help;
  std::variant<bool Config::*, int64_t Config::*, double Config::*, std::string Config::*> member;
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // of a text; empty means any
};

// The fields of a task in the order of its file, without "task" itself.
const std::vector<Field>& fields(const std::string& task);
const Field* find_field(const std::string& task, const std::string& name);  // null when unknown

// Sets a field after checking the value; throws ConfigError ("delay is 0; it must be ...").
void set(Config& config, const Field& field, const std::string& text);  // as a flag gives it
void set(Config& config, const Field& field, const toml::Value& value);
std::string text(const Config& config, const Field& field);  // as a flag would give it

// What makes `now` another run than `before`: "detach 0.5 (now 0.25), lr ...", empty when nothing
// does. Where the data lies is no part of a run.
std::string differences(const Config& now, const Config& before);

// Rules between fields; throws ConfigError.
void check(const Config& config);

// config.toml: every field, resolved.
std::string to_toml(const Config& config);
// Of it what stays the same for as long as the run lasts: not where its data lies, nor its epochs.
std::string lasting_toml(const Config& config);

// Sets the fields that the table names, "task" aside. Throws toml::Error ("name:line: ...") on an
// unknown key or a bad value.
void apply(Config& config, const toml::Table& table, const std::string& name);

// A whole file: "task" must be there, other fields default. `name` stands in the messages.
Config parse_config(const std::string& text, const std::string& name);

}  // namespace hdetach::train
