// Memory and a stream of the device that free themselves.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/cuda/check.h"

namespace hdetach::train {

template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t size) : size_(size) {
    if (size == 0) return;
    const cudaError_t status = cudaMalloc(&data_, bytes());
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it would be found again by the next check
      throw std::runtime_error("cudaMalloc: out of memory, " + std::to_string(bytes()) +
                               " bytes asked for; lower --batch or --hidden, or train fewer runs "
                               "side by side (--replicas)");
    }
    cuda::check(status, "cudaMalloc");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }

  T* get() const { return data_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }

  void clear(cudaStream_t stream) const {
    if (size_ > 0) cuda::check(cudaMemsetAsync(data_, 0, bytes(), stream), "cudaMemsetAsync");
  }

 private:
  void swap(DeviceArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  size_t size_ = 0;
};

class Stream {
 public:
  // Not ordered after the default stream: a capture would not allow it.
  Stream() {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void wait() const { cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  template <class T>
  void copy(T* to, const T* from, size_t count) const {  // between host and device, either way
    cuda::check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream_),
                "cudaMemcpyAsync");
  }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace hdetach::train
