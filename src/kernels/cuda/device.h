// The GPU as the program, the tests and the bench ask about it, torch-free. In a build without CUDA
// there is none: cuda_present() is false and nothing else may be called.
#pragma once

#include <memory>
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

// Holds back what is queued on a stream after it until release(), so that a slow host cannot leave
// the device waiting between two pieces of work. The queue of a stream is short and a full one
// makes the host wait, so a hold ends by itself after a tenth of a second.
class CudaHold {
 public:
  explicit CudaHold(void* stream);
  ~CudaHold();
  CudaHold(const CudaHold&) = delete;
  CudaHold& operator=(const CudaHold&) = delete;

  void release();

 private:
  struct Gate;
  std::shared_ptr<Gate> gate_;
};

}  // namespace hdetach
