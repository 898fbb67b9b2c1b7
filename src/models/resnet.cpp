#include "models/resnet.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

namespace hdetach {
namespace {

// Channels lie innermost throughout, as the pixels come: oneDNN then need not reorder between
// layers.
constexpr auto kLayout = at::MemoryFormat::ChannelsLast;

at::Tensor tensor_of(const std::vector<float>& values, at::IntArrayRef shape, at::Device device) {
  // Copied: what from_blob gives borrows.
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat).clone().to(device);
}

}  // namespace

struct ResNet::Layers {
  struct Layer {
    at::Tensor weight, bias;

    at::Tensor operator()(const at::Tensor& x, int64_t stride) const {
      const int64_t padding = weight.size(2) / 2;
      return at::conv2d(x, weight, bias, {stride, stride}, {padding, padding});
    }
  };

  Layers(const ResNetWeights& weights, at::Device device)
      : device(device),
        blocks(weights.blocks),
        stride_first(weights.stride_first),
        mean(tensor_of({weights.mean.begin(), weights.mean.end()}, {1, 3, 1, 1}, device)),
        scale(tensor_of({weights.scale.begin(), weights.scale.end()}, {1, 3, 1, 1}, device)) {
    for (const Convolution& c : weights.convolutions) {
      layers.push_back(
          {tensor_of(c.weight, {c.out, c.in, c.kernel, c.kernel}, device).contiguous(kLayout),
           tensor_of(c.bias, {c.out}, device)});
    }
  }

  // [images, 3, side, side], 0 to 255, to [images, kChannels, side / 32, side / 32]
  at::Tensor forward(at::Tensor x) const {
    auto layer = layers.begin();
    x = (*layer++)((x - mean).mul_(scale), 2).relu_();
    x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int64_t block = 0; block < blocks[stage]; ++block) {
        const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        at::Tensor y = (*layer++)(x, stride_first ? stride : 1).relu_();
        y = (*layer++)(y, stride_first ? 1 : stride).relu_();
        y = (*layer++)(y, 1);
        if (block == 0) x = (*layer++)(x, stride);
        x = y.add_(x).relu_();
      }
    }
    return x;
  }

  at::Device device;
  std::array<int64_t, 4> blocks;
  bool stride_first;
  at::Tensor mean, scale;
  std::vector<Layer> layers;
};

bool ResNet::cuda_is_available() { return at::hasCUDA(); }

ResNet::ResNet(const ResNetWeights& weights, bool on_cuda) {
  const c10::InferenceMode inference;
  // TF32 would lose as many bits as the features are kept with.
  if (on_cuda) at::globalContext().setAllowTF32CuDNN(false);
  layers_ = std::make_unique<Layers>(weights, on_cuda ? at::kCUDA : at::kCPU);
}

ResNet::~ResNet() = default;

std::vector<float> ResNet::features(const std::vector<float>& pixels, int64_t side,
                                    bool pooled) const {
  const int64_t image = side * side * 3;
  TORCH_CHECK(side > 0 && static_cast<int64_t>(pixels.size()) % image == 0, "[resnet] ",
              pixels.size(), " numbers are not images of ", side, " x ", side, " x 3.");
  const c10::InferenceMode inference;
  const int64_t images = static_cast<int64_t>(pixels.size()) / image;
  const at::Tensor in =
      tensor_of(pixels, {images, side, side, 3}, layers_->device).permute({0, 3, 1, 2});
  at::Tensor out = layers_->forward(in).permute({0, 2, 3, 1}).flatten(1, 2);
  if (pooled) out = out.mean(1);
  out = out.cpu().contiguous();
  const float* const values = out.data_ptr<float>();
  return {values, values + out.numel()};
}

}  // namespace hdetach
