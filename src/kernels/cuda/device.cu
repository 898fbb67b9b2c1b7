// device.h with the CUDA runtime.
#include "kernels/cuda/device.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "kernels/cuda/check.h"
#include "kernels/cuda/kernels.h"

namespace hdetach {
namespace {

using cuda::check;

cudaEvent_t new_event() {
  cudaEvent_t event;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

cudaEvent_t as_event(void* event) { return static_cast<cudaEvent_t>(event); }
cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

bool cuda_present() {
  static const bool present = [] {
    int count = 0;
    const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
    if (!found) cudaGetLastError();  // "no device" must not be the next call's error
    return found;
  }();
  return present;
}

const char* cuda_unavailable() {
  if (!cuda_present()) return "there is no CUDA device";
  static const bool suits = [] {
    int device, major;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
          "cudaDeviceGetAttribute");
    return major >= 9;
  }();
  return suits ? nullptr : "the GPU is older than compute capability 9.0 (Hopper)";
}

std::string cuda_device_name() {
  int device;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

void cuda_synchronize() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

CudaTimer::CudaTimer() : start_(new_event()), stop_(new_event()) {}

CudaTimer::~CudaTimer() {
  cudaEventDestroy(as_event(start_));
  cudaEventDestroy(as_event(stop_));
}

void CudaTimer::start(void* stream) {
  check(cudaEventRecord(as_event(start_), as_stream(stream)), "cudaEventRecord");
}

void CudaTimer::stop(void* stream) {
  check(cudaEventRecord(as_event(stop_), as_stream(stream)), "cudaEventRecord");
}

double CudaTimer::milliseconds() const {
  check(cudaEventSynchronize(as_event(stop_)), "cudaEventSynchronize");
  float elapsed = 0;
  check(cudaEventElapsedTime(&elapsed, as_event(start_), as_event(stop_)), "cudaEventElapsedTime");
  return elapsed;
}

struct CudaHold::Gate {
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;

  // In a thread of CUDA's own, when the stream comes to it.
  static void wait(void* own) {
    const std::unique_ptr<std::shared_ptr<Gate>> held(static_cast<std::shared_ptr<Gate>*>(own));
    Gate& gate = **held;
    std::unique_lock<std::mutex> lock(gate.mutex);
    gate.opened.wait_for(lock, std::chrono::milliseconds(100), [&] { return gate.open; });
  }
};

CudaHold::CudaHold(void* stream) : gate_(std::make_shared<Gate>()) {
  auto own = std::make_unique<std::shared_ptr<Gate>>(gate_);
  check(cudaLaunchHostFunc(as_stream(stream), Gate::wait, own.get()), "cudaLaunchHostFunc");
  own.release();  // wait() frees it
}

CudaHold::~CudaHold() { release(); }

void CudaHold::release() {
  const std::lock_guard<std::mutex> lock(gate_->mutex);
  gate_->open = true;
  gate_->opened.notify_all();
}

}  // namespace hdetach
