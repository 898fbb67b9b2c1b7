#include "models/resnet_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "formats/mapped_file.h"
#include "formats/safetensors.h"
#include "formats/tfjs_weights.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;

struct Depth {
  const char* name;
  std::array<int64_t, 4> blocks;
};
constexpr Depth kDepths[] = {
    {"ResNet-50", {3, 4, 6, 3}}, {"ResNet-101", {3, 4, 23, 3}}, {"ResNet-152", {3, 8, 36, 3}}};

// Where a convolution and the normalisation behind it are found.
struct Names {
  std::string convolution, norm;
};

// How one kind of file names and lays out what all have.
class Source {
 public:
  Source(const safetensors::Contents& contents, std::string file)
      : contents_(contents), file_(std::move(file)) {}
  virtual ~Source() = default;

  virtual Names first() const = 0;
  virtual Names in_block(int64_t stage, int64_t block, int64_t i) const = 0;  // i = 0, 1, 2
  virtual Names beside(int64_t stage) const = 0;
  virtual Convolution read(const Names& names, int64_t out, int64_t in, int64_t kernel) const = 0;

 protected:
  std::vector<float> floats(const std::string& name, const std::vector<int64_t>& shape) const {
    const safetensors::Array* const array = contents_.find(name);
    if (array == nullptr) {
      throw std::runtime_error(fmt::format("{}: there is no array {}", file_, name));
    }
    if (array->dtype != "F32" || array->shape != shape) {
      throw std::runtime_error(fmt::format("{}: {} is {} {}; the network needs F32 {}", file_, name,
                                           array->dtype, list(array->shape), list(shape)));
    }
    std::vector<float> values(array->size / sizeof(float));
    std::memcpy(values.data(), array->data, array->size);
    return values;
  }

  // norm(convolution(x) + bias), as one convolution: `weight` is [out, ...].
  Convolution fold(Convolution convolution, const std::vector<float>& bias, double epsilon,
                   const std::array<std::string, 4>& norm) const {
    const std::vector<int64_t> shape = {convolution.out};
    const std::vector<float> gain = floats(norm[0], shape), shift = floats(norm[1], shape),
                             mean = floats(norm[2], shape), variance = floats(norm[3], shape);
    const size_t filter = convolution.weight.size() / bias.size();
    bool finite = true;
    for (size_t i = 0; i < bias.size(); ++i) {
      const double scale = gain[i] / std::sqrt(variance[i] + epsilon);
      for (size_t j = i * filter; j < (i + 1) * filter; ++j) {
        convolution.weight[j] = static_cast<float>(convolution.weight[j] * scale);
        finite &= std::isfinite(convolution.weight[j]);
      }
      convolution.bias.push_back(static_cast<float>((bias[i] - mean[i]) * scale + shift[i]));
      finite &= std::isfinite(convolution.bias.back());
    }
    if (!finite) {
      throw std::runtime_error(fmt::format(
          "{}: {} and the convolution before it are not finite numbers", file_, norm[0]));
    }
    return convolution;
  }

 private:
  static std::string list(const std::vector<int64_t>& sizes) {
    std::string text;
    for (const int64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ",", size);
    return "[" + text + "]";
  }

  const safetensors::Contents& contents_;
  const std::string file_;
};

class Torchvision : public Source {
 public:
  using Source::Source;

  Names first() const override { return {"conv1", "bn1"}; }
  Names in_block(int64_t stage, int64_t block, int64_t i) const override {
    const std::string place = fmt::format("layer{}.{}.", stage + 1, block);
    return {fmt::format("{}conv{}", place, i + 1), fmt::format("{}bn{}", place, i + 1)};
  }
  Names beside(int64_t stage) const override {
    const std::string place = fmt::format("layer{}.0.downsample.", stage + 1);
    return {place + "0", place + "1"};
  }
  Convolution read(const Names& names, int64_t out, int64_t in, int64_t kernel) const override {
    constexpr double kEpsilon = 1e-5;
    const std::string& norm = names.norm;
    return fold(
        {out, in, kernel, floats(names.convolution + ".weight", {out, in, kernel, kernel}), {}},
        std::vector<float>(out, 0.0f), kEpsilon,
        {norm + ".weight", norm + ".bias", norm + ".running_mean", norm + ".running_var"});
  }
};

class Keras : public Source {
 public:
  using Source::Source;

  Names first() const override { return {"conv1", "bn_conv1"}; }
  Names in_block(int64_t stage, int64_t block, int64_t i) const override {
    return branch(stage, block, fmt::format("2{}", static_cast<char>('a' + i)));
  }
  Names beside(int64_t stage) const override { return branch(stage, 0, "1"); }
  Convolution read(const Names& names, int64_t out, int64_t in, int64_t kernel) const override {
    constexpr double kEpsilon = 1e-3;
    const std::string& norm = names.norm;
    const std::vector<float> kernels =
        floats(names.convolution + "/kernel", {kernel, kernel, in, out});
    Convolution convolution{out, in, kernel, std::vector<float>(kernels.size()), {}};
    for (int64_t place = 0; place < kernel * kernel; ++place) {
      for (int64_t i = 0; i < in; ++i) {
        // The image comes as BGR there, as RGB here.
        const int64_t channel = in == 3 ? 2 - i : i;
        for (int64_t o = 0; o < out; ++o) {
          convolution.weight[(o * in + channel) * kernel * kernel + place] =
              kernels[(place * in + i) * out + o];
        }
      }
    }
    return fold(
        std::move(convolution), floats(names.convolution + "/bias", {out}), kEpsilon,
        {norm + "/gamma", norm + "/beta", norm + "/moving_mean", norm + "/moving_variance"});
  }

 private:
  static Names branch(int64_t stage, int64_t block, const std::string& name) {
    const std::string place =
        fmt::format("{}{}_branch{}", stage + 2, static_cast<char>('a' + block), name);
    return {"res" + place, "bn" + place};
  }
};

// By the third stage, the only one whose length differs between all three.
const Depth& depth_of(const safetensors::Contents& contents, const std::string& file) {
  const auto blocks = [&contents] {
    int64_t count = 0;
    while (contents.find(fmt::format("layer3.{}.conv1.weight", count)) != nullptr) ++count;
    return count;
  }();
  for (const Depth& depth : kDepths) {
    if (depth.blocks[2] == blocks) return depth;
  }
  throw std::runtime_error(
      fmt::format("{}: there is no array layer3.{}.conv1.weight; a ResNet-50 has 6 such blocks, "
                  "a ResNet-101 23 and a ResNet-152 36, under torchvision's names",
                  file, blocks));
}

std::vector<Convolution> read_all(const Source& source, const std::array<int64_t, 4>& blocks) {
  std::vector<Convolution> all = {source.read(source.first(), 64, 3, 7)};
  int64_t channels = 64;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage, out = 4 * width;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const auto name = [&](int64_t i) { return source.in_block(stage, block, i); };
      all.push_back(source.read(name(0), width, channels, 1));
      all.push_back(source.read(name(1), width, width, 3));
      all.push_back(source.read(name(2), out, width, 1));
      if (block == 0) all.push_back(source.read(source.beside(stage), out, channels, 1));
      channels = out;
    }
  }
  return all;
}

}  // namespace

ResNetWeights read_resnet_weights(const fs::path& path) {
  std::error_code ignored;  // what cannot be examined cannot be read, and that is said below
  const bool is_folder = fs::is_directory(path, ignored);
  if (is_folder || path.filename() == "model.json") {
    const fs::path folder = is_folder ? path : path.parent_path();
    const safetensors::File file = tfjs::read(folder);
    const Depth& depth = kDepths[0];
    return {fmt::format("{} of Keras", depth.name),
            depth.blocks,
            /*stride_first=*/true,
            {123.68f, 116.779f, 103.939f},
            {1, 1, 1},
            read_all(Keras(file, (folder / "model.json").string()), depth.blocks)};
  }
  const files::MappedFile file(path);
  const safetensors::Contents contents = safetensors::read_header(file.bytes(), path.string());
  const Depth& depth = depth_of(contents, path.string());
  ResNetWeights weights{fmt::format("{} of torchvision", depth.name),
                        depth.blocks,
                        /*stride_first=*/false,
                        {0.485f, 0.456f, 0.406f},
                        {0.229f, 0.224f, 0.225f},
                        read_all(Torchvision(contents, path.string()), depth.blocks)};
  for (size_t colour = 0; colour < 3; ++colour) {  // those are for pixels from 0 to 1
    weights.mean[colour] *= 255;
    weights.scale[colour] = 1 / (255 * weights.scale[colour]);
  }
  return weights;
}

uint64_t ResNetWeights::checksum() const {
  uint64_t sum = 14695981039346656037u;  // FNV-1a, a number at a time
  const auto add = [&sum](const std::vector<float>& values) {
    for (const float& value : values) {
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      sum = (sum ^ bits) * 1099511628211u;
    }
  };
  for (const Convolution& convolution : convolutions) {
    add(convolution.weight);
    add(convolution.bias);
  }
  return sum;
}

}  // namespace hdetach
