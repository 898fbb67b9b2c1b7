// The attention of a build without CUDA.
#include <stdexcept>

#include "models/cuda/attend.h"

namespace hdetach::cuda {
namespace {

[[noreturn]] void fail() { throw std::runtime_error("this program was built without CUDA"); }

}  // namespace

void attend_forward(const AttendForward&, void*) { fail(); }
void attend_backward(const AttendBackward&, void*) { fail(); }

}  // namespace hdetach::cuda
