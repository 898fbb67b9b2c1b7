// Any bytes as TensorFlow.js's model.json: the names of shards stay in the folder, and sizes are
// those of the shapes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/tfjs_weights.h"

namespace tfjs = hdetach::tfjs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const tfjs::Group& group :
         tfjs::parse_manifest({reinterpret_cast<const char*>(data), size}, "x")) {
      for (const std::string& shard : group.shards) {
        if (shard.empty() || shard.find('/') != std::string::npos) std::abort();
      }
      for (const tfjs::Listed& array : group.arrays) {
        size_t expected = sizeof(float);
        for (const int64_t side : array.shape) expected *= static_cast<size_t>(side);
        if (expected != array.size) std::abort();
      }
    }
  } catch (const tfjs::Error&) {
  }
  return 0;
}
