// Weights as TensorFlow.js keeps them: model.json lists the arrays, and files beside it (shards)
// hold their bytes, one array after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"

namespace hdetach::tfjs {

struct Listed {
  std::string name;
  std::vector<int64_t> shape;
  size_t size;  // bytes; every array is of float32
};

// What stands in one row of shards.
struct Group {
  std::vector<std::string> shards;  // plain names of files
  std::vector<Listed> arrays;
};

// "ResNet50/model.json: what is wrong"
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `name` stands in the messages. Any bytes are safe: what is not such a list throws Error, and so
// do arrays that are quantised or not float32.
std::vector<Group> parse_manifest(std::string_view model_json, const std::string& name);

// All arrays of the folder's model.json, in the form that safetensors files give. Throws Error, or
// std::runtime_error where a file cannot be read.
safetensors::File read(const std::filesystem::path& folder);

}  // namespace hdetach::tfjs
