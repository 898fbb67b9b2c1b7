#include "formats/tfjs_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/files.h"
#include "tests/mutate.h"
#include "tests/program.h"

namespace hdetach {
namespace {

const std::string kModel =
    R"({"modelTopology": {"x": [1]}, "weightsManifest": [)"
    R"({"paths": ["a.bin", "b.bin"], "weights": [)"
    R"({"name": "one", "shape": [2, 2], "dtype": "float32"},)"
    R"({"name": "two", "shape": [], "dtype": "float32"}]},)"
    R"({"paths": ["c.bin"], "weights": [{"name": "three", "shape": [1], "dtype": "float32"}]}]})";

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  return text.replace(text.find(part), part.size(), by);
}

std::string bytes_of(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

template <class Call>
std::string message(Call call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TfjsWeights, ArraysRunOnFromShardToShard) {
  const TemporaryFolder folder;
  files::write(folder / "model.json", kModel);
  const std::string group = bytes_of({1, 2, 3, 4, 5});
  files::write(folder / "a.bin", group.substr(0, 7));
  files::write(folder / "b.bin", group.substr(7));
  files::write(folder / "c.bin", bytes_of({6}));
  const safetensors::File file = tfjs::read(folder.path());
  const auto values = [&file](const char* name, const std::vector<int64_t>& shape) {
    const safetensors::Array* const array = file.find(name);
    EXPECT_TRUE(array != nullptr && array->dtype == "F32" && array->shape == shape) << name;
    std::vector<float> numbers(array->size / sizeof(float));
    std::memcpy(numbers.data(), array->data, array->size);
    return numbers;
  };
  EXPECT_EQ(values("one", {2, 2}), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values("two", {}), std::vector<float>{5});
  EXPECT_EQ(values("three", {1}), std::vector<float>{6});

  const auto read = [&folder] { tfjs::read(folder.path()); };
  const std::string model = (folder / "model.json").string();
  files::write(folder / "c.bin", bytes_of({6, 7}));
  EXPECT_EQ(message(read), model + ": no array covers the last 4 bytes of the shards up to c.bin");
  files::write(folder / "c.bin", "abc");
  EXPECT_EQ(message(read), model + ": the shards end inside array three; fetch them again");
  std::filesystem::remove(folder / "b.bin");
  EXPECT_EQ(message(read),
            (folder / "b.bin").string() + ": cannot open: No such file or directory");
}

TEST(TfjsWeights, ListsThatAreNotUnderstoodAreErrors) {
  const auto refusal = [](const std::string& text) {
    return message([&] { tfjs::parse_manifest(text, "m"); });
  };
  EXPECT_EQ(refusal(kModel), "no error");
  EXPECT_EQ(refusal(""), "m: not JSON, or not an object");
  EXPECT_EQ(refusal("{}"), "m: there is no list \"weightsManifest\" where TensorFlow.js has one");
  EXPECT_EQ(refusal(R"({"weightsManifest": [7]})"),
            "m: there is no list \"paths\" where TensorFlow.js has one");
  EXPECT_EQ(refusal(replaced(kModel, "a.bin", "../a.bin")),
            "m: shard \"../a.bin\" is not the name of a file beside it");
  EXPECT_EQ(refusal(replaced(kModel, "\"two\"", "\"one\"")), "m: array one stands twice");
  EXPECT_EQ(refusal(replaced(kModel, "float32", "int32")),
            "m: array one is quantised or not float32; only plain float32 can be read");
  EXPECT_EQ(refusal(replaced(kModel, "\"dtype\"", R"("quantization": {}, "dtype")")),
            "m: array one is quantised or not float32; only plain float32 can be read");
  for (const char* shape : {"[-1, 2]", "[1.5]", "[\"2\"]", "[4294967296, 4294967296]"}) {
    EXPECT_EQ(refusal(replaced(kModel, "[2, 2]", shape)), "m: array one has an impossible shape");
  }
  EXPECT_EQ(refusal(replaced(kModel, "\"name\"", "\"nome\"")).substr(0, 29),
            "m: an array without \"name\": {");
}

TEST(TfjsWeights, MutatedListsAreReadOrRefused) {
  Mutator mutate;
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = mutate(kModel);
    refused += message([&] { tfjs::parse_manifest(text, "m"); }) != "no error";
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace hdetach
