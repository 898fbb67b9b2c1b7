#include "kernels/packing.h"

#include <algorithm>

#include "kernels/cuda/check.h"

namespace hdetach {
namespace {

constexpr int kRowsPerBlock = 8;  // a warp each

template <typename T, bool kToSteps>
__device__ void move_own_row(const PackedBatch& batch, const PackedData<T>& data) {
  const int64_t index = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (index >= rows_to_move<T, kToSteps>(batch, data)) return;
  const int64_t b = index % batch.batch;
  if (batch.order != nullptr && (batch.order[b] < 0 || batch.order[b] >= batch.batch)) __trap();
  move_row<T, kToSteps>(batch, data, index, threadIdx.x, 32);
}

template <typename T, bool kToSteps>
__global__ void move_rows(PackedBatch batch, PackedData<T> h, PackedData<T> c) {
  move_own_row<T, kToSteps>(batch, blockIdx.y == 0 ? h : c);
}

struct Numbers {
  static constexpr int kMost = 480;  // a launch takes 4 KB of arguments
  int64_t value[kMost];
};

__global__ void store(const __grid_constant__ Numbers numbers, int count, int64_t* to) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = numbers.value[i];
}

// numbers: the whole table, which is then not read from memory, or none of it, where it is there.
template <typename T>
__global__ void start_rows(PackedBatch batch, PackedData<T> data, PackedStart<T> start,
                           const __grid_constant__ Numbers numbers, int count) {
  const int64_t threads = 32 * kRowsPerBlock, thread = 32 * threadIdx.y + threadIdx.x;
  if (blockIdx.x == 0) {
    for (int64_t i = thread; i < count; i += threads) start.table[i] = numbers.value[i];
  }
  for (int64_t i = blockIdx.x * threads + thread; i < start.zero_count; i += gridDim.x * threads) {
    start.zeros[i] = T(0);
  }
  if (count > 0) {
    batch.lengths = numbers.value;
    batch.first_row = numbers.value + batch.batch;
  }
  move_own_row<T, true>(batch, data);
}

dim3 grid_of(int64_t rows, int parts) {
  const int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(parts)};
}

constexpr dim3 kBlock(32, kRowsPerBlock);

}  // namespace

template <typename T>
void move_packed_cuda(const PackedBatch& batch, const PackedData<T>& h, const PackedData<T>& c,
                      bool to_steps, void* stream) {
  const auto kernel = to_steps ? move_rows<T, true> : move_rows<T, false>;
  const auto count = to_steps ? rows_to_move<T, true> : rows_to_move<T, false>;
  const bool both = c.steps != nullptr;
  const int64_t rows = both ? std::max(count(batch, h), count(batch, c)) : count(batch, h);
  kernel<<<grid_of(rows, both ? 2 : 1), kBlock, 0, static_cast<cudaStream_t>(stream)>>>(batch, h,
                                                                                        c);
  cuda::check(cudaGetLastError(), "move_rows");
}

template <typename T>
void start_packed_cuda(const PackedBatch& batch, const PackedData<T>& data,
                       const PackedStart<T>& start, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  Numbers part;
  int64_t begin = 0, now = start.count;
  // A table that is too long for one launch goes ahead.
  for (; start.count > Numbers::kMost && begin < start.count; begin += now) {
    now = std::min<int64_t>(start.count - begin, Numbers::kMost);
    std::copy_n(start.numbers + begin, now, part.value);
    store<<<1, 128, 0, queue>>>(part, static_cast<int>(now), start.table + begin);
    cuda::check(cudaGetLastError(), "store");
  }
  const int left = static_cast<int>(start.count - begin);
  std::copy_n(start.numbers + begin, left, part.value);
  start_rows<<<grid_of(batch.steps * batch.batch, 1), kBlock, 0, queue>>>(batch, data, start, part,
                                                                          left);
  cuda::check(cudaGetLastError(), "start_rows");
}

template void move_packed_cuda(const PackedBatch&, const PackedData<float>&,
                               const PackedData<float>&, bool, void*);
template void move_packed_cuda(const PackedBatch&, const PackedData<double>&,
                               const PackedData<double>&, bool, void*);
template void start_packed_cuda(const PackedBatch&, const PackedData<float>&,
                                const PackedStart<float>&, void*);
template void start_packed_cuda(const PackedBatch&, const PackedData<double>&,
                                const PackedStart<double>&, void*);

}  // namespace hdetach
