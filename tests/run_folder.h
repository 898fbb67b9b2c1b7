// Tiny runs whose files a test changes.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "formats/files.h"
#include "formats/safetensors.h"
#include "tiny_run.h"
#include "train/seal.h"

namespace hdetach {

class RunFolderTest : public TinyRun {
 protected:
  RunFolderTest() : TinyRun(/*epochs=*/4, /*updates_per_epoch=*/5) {}

  std::filesystem::path file(const std::string& name) const { return root_ / name; }

  void copy_run(const std::string& from, const std::string& to) const {
    std::filesystem::remove_all(file(to));
    std::filesystem::copy(file(from), file(to));
  }

  // The state written again, whole, after `change` of one of its arrays.
  template <class Value>
  void change_state(const std::string& run, const char* array,
                    const std::function<void(Value*)>& change) {
    const std::filesystem::path path = file(run) / "state.safetensors";
    auto state = safetensors::parse(files::read(path), "state");
    std::vector<safetensors::View> views;
    for (const auto& each : state.arrays) {
      if (each.name == array) change(reinterpret_cast<Value*>(const_cast<char*>(each.data)));
      views.push_back({each.name, each.dtype, each.shape, each.data});
    }
    files::write(path, train::sealed(views, state.metadata));
  }

  // No learning rate breaks an LSTM's bounded states for sure; a bias that is not finite does.
  void poison(const std::string& name) {
    change_state<float>(name, "head.bias",
                        [](float* bias) { bias[0] = std::numeric_limits<float>::infinity(); });
  }

  std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
};

}  // namespace hdetach
