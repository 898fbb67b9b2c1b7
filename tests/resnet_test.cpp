// The ResNet against a plain evaluation in float64, and weights that do not fit.
#include "models/resnet.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/tensor.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/files.h"
#include "formats/safetensors.h"
#include "op/random_bits.h"
#include "tests/program.h"
#include "tests/resnet_arrays.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;
using program::contains;

constexpr double kEpsilon = 1e-5, kKerasEpsilon = 1e-3;

const ResNetArrays& arrays() {
  static const ResNetArrays made(7);
  return made;
}

at::Tensor array_of(const std::string& name) {
  const ResNetArrays::Array& array = arrays()[name];
  return at::from_blob(const_cast<float*>(array.values.data()), array.shape, at::kFloat);
}

// layer3.5.conv2 is res4f_branch2b, layer3.5.bn2 is bn4f_branch2b, layer3.0.downsample is
// branch1 of 4a.
std::string keras_place(const std::string& name) {
  if (name.rfind("layer", 0) != 0) return "";
  std::string place = {static_cast<char>(name[5] + 1), static_cast<char>(name[7] - '0' + 'a')};
  if (contains(name, "downsample")) return place + "_branch1";
  return place + "_branch2" + static_cast<char>(name.back() - '1' + 'a');
}

// The same network as Keras keeps it: kernels by place, BGR, a bias, another epsilon.
void write_keras(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream shards[] = {std::ofstream(folder / "a.bin", std::ios::binary),
                            std::ofstream(folder / "b.bin", std::ios::binary)};
  nlohmann::json lists[] = {nlohmann::json::array(), nlohmann::json::array()};
  int group = 0;
  const auto put = [&](const std::string& name, const at::Tensor& values) {
    const at::Tensor array = values.contiguous();
    lists[group].push_back({{"name", name}, {"shape", array.sizes().vec()}, {"dtype", "float32"}});
    shards[group].write(reinterpret_cast<const char*>(array.data_ptr<float>()), array.nbytes());
  };
  for (const ResNetArrays::Names& names : arrays().names()) {
    const std::string place = keras_place(names.convolution);
    const std::string convolution = place.empty() ? "conv1" : "res" + place;
    const std::string norm = place.empty() ? "bn_conv1" : "bn" + place;
    const auto array = [&names](const char* end) { return array_of(names.norm + end); };
    at::Tensor kernel = array_of(names.convolution + ".weight").permute({2, 3, 1, 0});
    if (place.empty()) kernel = kernel.flip(2);
    const at::Tensor bias = array(".bias") * 2;
    put(convolution + "/kernel", kernel);
    put(convolution + "/bias", bias);
    put(norm + "/gamma", array(".weight"));
    put(norm + "/beta", array(".bias"));
    put(norm + "/moving_mean", array(".running_mean") + bias);
    put(norm + "/moving_variance", array(".running_var") + (kEpsilon - kKerasEpsilon));
    group = 1 - group;
  }
  files::write(folder / "model.json",
               nlohmann::json{{"weightsManifest",
                               {{{"paths", {"a.bin"}}, {"weights", lists[0]}},
                                {{"paths", {"b.bin"}}, {"weights", lists[1]}}}}}
                   .dump());
}

// x is [images, 3, side, side], normalised, float64; batch normalisation as it is written.
at::Tensor reference(at::Tensor x, bool stride_first) {
  const auto layer = [](const at::Tensor& in, const std::string& convolution,
                        const std::string& norm, int64_t stride) {
    const at::Tensor weight = array_of(convolution + ".weight").to(at::kDouble);
    const int64_t padding = weight.size(2) / 2;
    const auto array = [&norm](const char* end) { return array_of(norm + end).to(at::kDouble); };
    return at::batch_norm(at::conv2d(in, weight, {}, stride, padding), array(".weight"),
                          array(".bias"), array(".running_mean"), array(".running_var"),
                          /*training=*/false, /*momentum=*/0, kEpsilon, /*cudnn_enabled=*/false);
  };
  x = at::max_pool2d(layer(x, "conv1", "bn1", 2).relu(), 3, 2, 1);
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < kResNet50Blocks[stage]; ++block) {
      const std::string at = fmt::format("layer{}.{}.", stage + 1, block);
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      at::Tensor y = layer(x, at + "conv1", at + "bn1", stride_first ? stride : 1).relu();
      y = layer(y, at + "conv2", at + "bn2", stride_first ? 1 : stride).relu();
      y = layer(y, at + "conv3", at + "bn3", 1);
      if (block == 0) x = layer(x, at + "downsample.0", at + "downsample.1", stride);
      x = (y + x).relu();
    }
  }
  return x.permute({0, 2, 3, 1}).flatten(1, 2);  // [images, positions, channels]
}

// float32 through 53 layers: each rounds by about 1e-7 of sums of a hundred terms.
constexpr double kFloat32 = 2e-5;

void expect_near(const std::vector<float>& found, const at::Tensor& expected) {
  ASSERT_EQ(static_cast<int64_t>(found.size()), expected.numel());
  const at::Tensor values =
      at::from_blob(const_cast<float*>(found.data()), expected.sizes(), at::kFloat);
  const double largest = expected.abs().max().item<double>();
  EXPECT_GT(largest, 0.1);
  EXPECT_LE((values - expected).abs().max().item<double>(), kFloat32 * largest);
}

TEST(ResNet, IsThePlainNetworkWhateverKeepsItsWeights) {
  const TemporaryFolder folder;
  std::ofstream(folder / "resnet50.safetensors", std::ios::binary) << arrays().file();
  write_keras(folder / "keras");
  constexpr int64_t kImages = 2, kSide = 64;
  std::vector<float> pixels(kImages * kSide * kSide * 3);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<float>(255 * random_uniform(3, i));
  }
  const at::Tensor rgb = at::from_blob(pixels.data(), {kImages, kSide, kSide, 3}, at::kFloat)
                             .permute({0, 3, 1, 2})
                             .to(at::kDouble);
  const auto triple = [](double red, double green, double blue) {
    return at::tensor({red, green, blue}, at::kDouble).view({3, 1, 1});
  };

  const ResNetWeights plain = read_resnet_weights(folder / "resnet50.safetensors");
  EXPECT_EQ(plain.name, "ResNet-50 of torchvision");
  const at::Tensor expected =
      reference((rgb / 255 - triple(0.485, 0.456, 0.406)) / triple(0.229, 0.224, 0.225), false);
  const ResNet network(plain, /*on_cuda=*/false);
  expect_near(network.features(pixels, kSide, /*pooled=*/false), expected);
  expect_near(network.features(pixels, kSide, /*pooled=*/true), expected.mean(1));

  const ResNetWeights keras = read_resnet_weights(folder / "keras");
  EXPECT_EQ(keras.name, "ResNet-50 of Keras");
  EXPECT_NE(keras.checksum(), plain.checksum());
  expect_near(ResNet(keras, false).features(pixels, kSide, false),
              reference(rgb - triple(123.68, 116.779, 103.939), true));
}

std::string refusal(const fs::path& path) {
  try {
    read_resnet_weights(path);
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    return contains(text, path.string()) ? text.substr(path.string().size()) : text;
  }
  return "no error";
}

TEST(ResNet, WeightsThatDoNotFitAreNamed) {
  const TemporaryFolder folder;
  const fs::path file = folder / "weights.safetensors";
  const std::vector<float> zeros(64 * 3 * 7 * 7);
  std::vector<safetensors::View> views;
  for (int block = 0; block < 5; ++block) {
    views.push_back({fmt::format("layer3.{}.conv1.weight", block), "F32", {1}, zeros.data()});
  }
  const auto write = [&](const safetensors::View& view) {
    views.push_back(view);
    files::write(file, safetensors::serialize(views, {}));
  };
  write({"other", "F32", {1}, zeros.data()});
  EXPECT_TRUE(contains(refusal(file), ": there is no array layer3.5.conv1.weight; a ResNet-50 has"))
      << refusal(file);
  write({"layer3.5.conv1.weight", "F32", {1}, zeros.data()});
  EXPECT_EQ(refusal(file), ": there is no array conv1.weight");
  write({"conv1.weight", "F32", {64, 3, 7, 7}, zeros.data()});
  EXPECT_EQ(refusal(file), ": there is no array bn1.weight");
  for (const char* name : {"bias", "running_mean", "running_var"}) {
    write({fmt::format("bn1.{}", name), "F32", {64}, zeros.data()});
  }
  write({"bn1.weight", "F32", {32}, zeros.data()});
  EXPECT_EQ(refusal(file), ": bn1.weight is F32 [32]; the network needs F32 [64]");
  const std::vector<float> infinite(64, INFINITY);
  views.back() = {"bn1.weight", "F32", {64}, infinite.data()};
  views.erase(views.begin());
  views.push_back({"layer3.0.conv1.weight", "F32", {1}, zeros.data()});
  files::write(file, safetensors::serialize(views, {}));
  EXPECT_EQ(refusal(file), ": bn1.weight and the convolution before it are not finite numbers");
  EXPECT_TRUE(contains(refusal(folder / "none.safetensors"), "No such file"));

  EXPECT_TRUE(contains(refusal(folder.path()), "model.json: cannot open: No such file"));
  files::write(folder / "model.json", R"({"weightsManifest": []})");
  EXPECT_EQ(refusal(folder.path()), "/model.json: there is no array conv1/kernel");
  EXPECT_EQ(refusal(folder / "model.json"), ": there is no array conv1/kernel");
}

}  // namespace
}  // namespace hdetach
