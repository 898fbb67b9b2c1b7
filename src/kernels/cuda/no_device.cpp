// device.h of a build without CUDA.
#include <stdexcept>

#include "kernels/cuda/device.h"

namespace hdetach {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

bool cuda_present() { return false; }
std::string cuda_device_name() { refuse(); }
void cuda_synchronize() { refuse(); }

CudaTimer::CudaTimer() : start_(nullptr), stop_(nullptr) { refuse(); }
CudaTimer::~CudaTimer() = default;
void CudaTimer::start(void*) { refuse(); }
void CudaTimer::stop(void*) { refuse(); }
double CudaTimer::milliseconds() const { refuse(); }

CudaHold::CudaHold(void*) { refuse(); }
CudaHold::~CudaHold() = default;
void CudaHold::release() { refuse(); }

}  // namespace hdetach
