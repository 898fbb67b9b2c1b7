// Any bytes as an IDX file; what is read must be, byte for byte, what stood there.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/idx.h"

namespace idx = hdetach::idx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  for (const int dimensions : {1, 3, 5}) {
    try {
      const idx::Array array = idx::parse(bytes, "x", dimensions);
      std::string again = {0, 0, 8, static_cast<char>(dimensions)};
      int64_t count = 1;
      for (const int64_t length : array.shape) {
        count *= length;
        for (int shift = 24; shift >= 0; shift -= 8) again += static_cast<char>(length >> shift);
      }
      again.append(array.data.begin(), array.data.end());
      if (again != bytes || static_cast<size_t>(count) != array.data.size()) std::abort();
    } catch (const idx::Error&) {
    }
  }
  return 0;
}
