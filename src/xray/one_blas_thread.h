// While it lives, a BLAS that keeps a pool of threads of its own (Debian's OpenBLAS) works in the
// caller's thread. The x-ray shares its rows out itself: its products are too small for that pool,
// whose threads spin while they wait, and their bits would depend on its size. So would those of
// the captioners' training.
#pragma once

namespace hdetach::xray {

class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  int before_ = 0;  // 0: there is no such BLAS
};

}  // namespace hdetach::xray
