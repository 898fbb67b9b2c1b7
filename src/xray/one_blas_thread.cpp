#include "xray/one_blas_thread.h"

#include <dlfcn.h>

namespace hdetach::xray {
namespace {

void set_blas_threads(int threads) {
  static const auto set =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set != nullptr) set(threads);
}

}  // namespace

OneBlasThread::OneBlasThread() {
  static const auto get =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  if (get == nullptr) return;
  before_ = get();
  set_blas_threads(1);
}

OneBlasThread::~OneBlasThread() {
  if (before_ > 0) set_blas_threads(before_);
}

}  // namespace hdetach::xray
