// Whatever the text, a configuration or a sweep is read or refused; what is read is written so that
// it reads the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/toml.h"
#include "train/config.h"
#include "train/sweep_file.h"

using namespace hdetach;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string written = train::to_toml(train::parse_config(text, "config"));
    if (train::to_toml(train::parse_config(written, "again")) != written) std::abort();
  } catch (const toml::Error&) {
  }
  try {
    for (const train::SweepRun& run : train::runs(train::parse_sweep(text, "sweep.toml"))) {
      const std::string written = train::to_toml(run.config);
      if (train::to_toml(train::parse_config(written, "run")) != written) std::abort();
    }
  } catch (const toml::Error&) {
  }
  return 0;
}
