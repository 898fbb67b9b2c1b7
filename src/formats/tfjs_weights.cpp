#include "formats/tfjs_weights.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "formats/files.h"

namespace hdetach::tfjs {
namespace {

using nlohmann::json;

class Manifest {
 public:
  explicit Manifest(const std::string& name) : name_(name) {}

  std::vector<Group> read(const json& model) {
    if (!model.is_object()) fail("not JSON, or not an object");
    std::vector<Group> groups;
    for (const json& listed : list(model, "weightsManifest")) {
      Group group;
      for (const json& shard : list(listed, "paths")) group.shards.push_back(shard_name(shard));
      for (const json& array : list(listed, "weights")) group.arrays.push_back(read_array(array));
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(name_ + ": " + what); }

  const json& list(const json& object, const char* key) const {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (found == object.end() || !found->is_array()) {
      fail(fmt::format("there is no list \"{}\" where TensorFlow.js has one", key));
    }
    return *found;
  }

  std::string shard_name(const json& shard) const {
    const std::string path = shard.is_string() ? shard.get<std::string>() : "";
    if (path.empty() || path == "." || path == ".." ||
        path.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      fail(fmt::format("shard {:.80} is not the name of a file beside it", shown(shard)));
    }
    return path;
  }

  Listed read_array(const json& array) {
    const auto text = [&](const char* key) -> std::string {
      const auto found = array.is_object() ? array.find(key) : array.end();
      if (found == array.end() || !found->is_string()) {
        fail(fmt::format("an array without \"{}\": {:.80}", key, shown(array)));
      }
      return found->get<std::string>();
    };
    Listed listed{text("name"), {}, sizeof(float)};
    if (!names_.insert(listed.name).second) {
      fail(fmt::format("array {:.80} stands twice", listed.name));
    }
    if (text("dtype") != "float32" || array.contains("quantization")) {
      fail(fmt::format("array {:.80} is quantised or not float32; only plain float32 can be read",
                       listed.name));
    }
    for (const json& size : list(array, "shape")) {
      // Of what is not a whole number the answer is no number of bytes.
      const int64_t value = size.is_number_integer() ? size.get<int64_t>() : -1;
      listed.shape.push_back(value);
      if (value < 0 || __builtin_mul_overflow(listed.size, value, &listed.size)) {
        fail(fmt::format("array {:.80} has an impossible shape", listed.name));
      }
    }
    return listed;
  }

  static std::string shown(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
  }

  const std::string& name_;
  std::unordered_set<std::string> names_;
};

}  // namespace

std::vector<Group> parse_manifest(std::string_view model_json, const std::string& name) {
  return Manifest(name).read(
      json::parse(model_json.begin(), model_json.end(), nullptr, /*allow_exceptions=*/false));
}

safetensors::File read(const std::filesystem::path& folder) {
  const std::filesystem::path model = folder / "model.json";
  const std::vector<Group> groups = parse_manifest(files::read(model), model.string());
  safetensors::File file;
  std::vector<size_t> offsets;
  for (const Group& group : groups) {
    size_t offset = file.bytes.size();
    for (const std::string& shard : group.shards) file.bytes += files::read(folder / shard);
    for (const Listed& array : group.arrays) {
      if (array.size > file.bytes.size() - offset) {
        throw Error(fmt::format("{}: the shards end inside array {}; fetch them again",
                                model.string(), array.name));
      }
      file.arrays.push_back({array.name, "F32", array.shape, nullptr, array.size});
      offsets.push_back(offset);
      offset += array.size;
    }
    if (offset != file.bytes.size()) {
      throw Error(fmt::format("{}: no array covers the last {} bytes of the shards up to {}",
                              model.string(), file.bytes.size() - offset, group.shards.back()));
    }
  }
  for (size_t i = 0; i < offsets.size(); ++i) file.arrays[i].data = file.bytes.data() + offsets[i];
  return file;
}

}  // namespace hdetach::tfjs
