// The GPU as the program, the tests and the bench ask about it, torch-free. In a build without CUDA
// there is none: cuda_present() is false and nothing else may be called.
#pragma once

#include <string>

namespace hdetach {

// The build has CUDA and a device is there to run it.
bool cuda_present();

std::string cuda_device_name();  // of the current device

// Waits for all work of the device. Throws std::runtime_error when some of it failed.
void cuda_synchronize();

// The time between two points of a stream, taken by the device.
class CudaTimer {
 public:
  CudaTimer();
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  void start(void* stream);  // a cudaStream_t, as is the other
  void stop(void* stream);
  double milliseconds() const;  // waits until the stream has come to stop()

 private:
  void* start_;  // cudaEvent_t
  void* stop_;
};

}  // namespace hdetach
