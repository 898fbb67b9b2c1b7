#include "kernels/packing.h"

#include <algorithm>

#include "kernels/cuda/check.h"

namespace hdetach {
namespace {

constexpr int kRowsPerBlock = 8;  // a warp each

template <typename T, bool kToSteps>
__global__ void move_rows(PackedBatch batch, PackedData<T> h, PackedData<T> c) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= batch.steps * batch.batch) return;
  const int64_t b = row % batch.batch;
  if (batch.order != nullptr && (batch.order[b] < 0 || batch.order[b] >= batch.batch)) __trap();
  move_row<T, kToSteps>(batch, blockIdx.y == 0 ? h : c, row / batch.batch, b, threadIdx.x, 32);
}

struct Numbers {
  int64_t value[480];  // a launch takes 4 KB of arguments
};

__global__ void store(Numbers numbers, int count, int64_t* to) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = numbers.value[i];
}

}  // namespace

template <typename T>
void move_packed_cuda(const PackedBatch& batch, const PackedData<T>& h, const PackedData<T>& c,
                      bool to_steps, void* stream) {
  const int64_t blocks = (batch.steps * batch.batch + kRowsPerBlock - 1) / kRowsPerBlock;
  const dim3 grid(blocks, c.steps != nullptr ? 2 : 1), block(32, kRowsPerBlock);
  const auto kernel = to_steps ? move_rows<T, true> : move_rows<T, false>;
  kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(batch, h, c);
  cuda::check(cudaGetLastError(), "move_rows");
}

template void move_packed_cuda(const PackedBatch&, const PackedData<float>&,
                               const PackedData<float>&, bool, void*);
template void move_packed_cuda(const PackedBatch&, const PackedData<double>&,
                               const PackedData<double>&, bool, void*);

void upload_cuda(const int64_t* numbers, int64_t count, int64_t* to, void* stream) {
  constexpr int64_t kMost = sizeof(Numbers) / sizeof(int64_t);
  Numbers part;
  for (int64_t begin = 0; begin < count; begin += kMost) {
    const int now = static_cast<int>(std::min(count - begin, kMost));
    std::copy_n(numbers + begin, now, part.value);
    store<<<1, 128, 0, static_cast<cudaStream_t>(stream)>>>(part, now, to + begin);
    cuda::check(cudaGetLastError(), "store");
  }
}

}  // namespace hdetach
