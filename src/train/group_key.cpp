#include "train/group_key.h"

#include <fmt/core.h>

namespace hdetach::train {

std::string group_key(const Config& config) {
  std::string key = config.task;
  // Captioners share nothing on a GPU: each is a group of its own.
  if (config.task == "caption") return to_toml(config);
  const char* const shared[] = {"data",   "delay", "symbols", "encoding",   "hidden",
                                "layers", "batch", "path",    "valid-size", "device"};
  for (const char* name : shared) {
    if (const Field* field = find_field(config.task, name)) {
      key += fmt::format(" {}={}", name, text(config, *field));
    }
  }
  return key;
}

}  // namespace hdetach::train
