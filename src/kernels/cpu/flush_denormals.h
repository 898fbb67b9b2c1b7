// Floats below 1e-38 count as zero while this lives, on this thread. A gradient that fades over
// hundreds of steps ends among them, and Intel's cores take some 150 cycles for each operation on
// one. Around calls that the compiler cannot see through: it may move arithmetic past the switch.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace hdetach {

class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushResults | kZeroInputs); }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushResults = 0x8000, kZeroInputs = 0x0040;
  unsigned before_;
#endif
};

}  // namespace hdetach
