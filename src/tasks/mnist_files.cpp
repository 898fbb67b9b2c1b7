#include "tasks/mnist_files.h"

#include <stdexcept>
#include <string>
#include <system_error>

#include "formats/files.h"
#include "formats/idx.h"

namespace hdetach {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{1} << 28;  // of a file unpacked; MNIST's largest has 47 MB
constexpr size_t kLabelsHeader = 8;             // bytes before the first label

struct NamedArray {
  std::string name;  // for messages
  idx::Array array;

  [[noreturn]] void fail(size_t offset, const std::string& what) const {
    throw idx::Error(name + ": byte " + std::to_string(offset) + ": " + what);
  }
};

NamedArray read_file(const fs::path& folder, const std::string& name, int dimensions) {
  const fs::path plain = folder / name, packed = folder / (name + ".gz");
  std::error_code ignored;  // a folder that cannot be searched holds no file that can be read
  const bool is_plain = fs::exists(plain, ignored);
  if (!is_plain && !fs::exists(packed, ignored)) {
    throw std::runtime_error(plain.string() +
                             ": not found, nor with .gz; put the four MNIST files "
                             "there, or run: hdetach data mnist --out " +
                             folder.string());
  }
  const fs::path& path = is_plain ? plain : packed;
  // Offsets count in the content, whatever it is packed in.
  const std::string shown = path.string() + (is_plain ? "" : " (unpacked)");
  return {shown, idx::parse(files::read_gzip(path, kMostBytes), shown, dimensions)};
}

MnistData read_pair(const fs::path& folder, const std::string& prefix) {
  NamedArray images = read_file(folder, prefix + "-images-idx3-ubyte", 3);
  NamedArray labels = read_file(folder, prefix + "-labels-idx1-ubyte", 1);
  const int64_t count = images.array.shape[0];
  const int64_t rows = images.array.shape[1], columns = images.array.shape[2];
  if (count == 0) images.fail(4, "there is no image");
  if (rows == 0 || columns == 0) {
    images.fail(rows == 0 ? 8 : 12, "an image of " + std::to_string(rows) + " x " +
                                        std::to_string(columns) + " has no pixel");
  }
  if (labels.array.shape[0] != count) {
    labels.fail(4, std::to_string(labels.array.shape[0]) + " labels, but " + images.name + " has " +
                       std::to_string(count) + " images");
  }
  for (size_t i = 0; i < labels.array.data.size(); ++i) {
    const int label = labels.array.data[i];
    if (label > 9)
      labels.fail(kLabelsHeader + i, "label " + std::to_string(label) + " is no digit");
  }
  return {rows, columns, std::move(images.array.data), std::move(labels.array.data)};
}

}  // namespace

MnistFiles read_mnist(const fs::path& folder) {
  MnistFiles files{read_pair(folder, "train"), read_pair(folder, "t10k")};
  const auto size = [](const MnistData& data) {
    return std::to_string(data.rows) + " x " + std::to_string(data.columns);
  };
  if (size(files.train) != size(files.test)) {
    throw std::runtime_error(folder.string() + ": training images are " + size(files.train) +
                             " pixels, test images " + size(files.test) +
                             "; take both from one data set");
  }
  return files;
}

}  // namespace hdetach
