#include "kernels/packing.h"

#include <algorithm>

#include "kernels/cuda/check.h"

namespace hdetach {
namespace {

constexpr int kRowsPerBlock = 8;  // a warp each

template <typename T, bool kToSteps>
__device__ void move_own_row(const PackedBatch& batch, const PackedData<T>& data) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= batch.steps * batch.batch) return;
  const int64_t b = row % batch.batch;
  if (batch.order != nullptr && (batch.order[b] < 0 || batch.order[b] >= batch.batch)) __trap();
  move_row<T, kToSteps>(batch, data, row / batch.batch, b, threadIdx.x, 32);
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

template <typename T>
__global__ void move_first_rows(PackedBatch batch, PackedData<T> data,
                                const __grid_constant__ Numbers numbers, int count, int64_t* to) {
  if (blockIdx.x == 0) {
    for (int i = threadIdx.y * 32 + threadIdx.x; i < count; i += 32 * kRowsPerBlock) {
      to[i] = numbers.value[i];
    }
  }
  batch.lengths = numbers.value;
  batch.first_row = numbers.value + batch.batch;
  move_own_row<T, true>(batch, data);
}

dim3 grid_of(const PackedBatch& batch, int parts) {
  const int64_t blocks = (batch.steps * batch.batch + kRowsPerBlock - 1) / kRowsPerBlock;
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(parts)};
}

constexpr dim3 kBlock(32, kRowsPerBlock);

}  // namespace

template <typename T>
void move_packed_cuda(const PackedBatch& batch, const PackedData<T>& h, const PackedData<T>& c,
                      bool to_steps, void* stream) {
  const auto kernel = to_steps ? move_rows<T, true> : move_rows<T, false>;
  kernel<<<grid_of(batch, c.steps != nullptr ? 2 : 1), kBlock, 0,
           static_cast<cudaStream_t>(stream)>>>(batch, h, c);
  cuda::check(cudaGetLastError(), "move_rows");
}

template <typename T>
void move_first_packed_cuda(const PackedBatch& batch, const PackedData<T>& rows,
                            const PackedTable& table, void* stream) {
  Numbers part;
  if (table.count <= Numbers::kMost) {
    std::copy_n(table.numbers, table.count, part.value);
    move_first_rows<<<grid_of(batch, 1), kBlock, 0, static_cast<cudaStream_t>(stream)>>>(
        batch, rows, part, static_cast<int>(table.count), table.to);
    cuda::check(cudaGetLastError(), "move_first_rows");
    return;
  }
  for (int64_t begin = 0; begin < table.count; begin += Numbers::kMost) {
    const int now = static_cast<int>(std::min<int64_t>(table.count - begin, Numbers::kMost));
    std::copy_n(table.numbers + begin, now, part.value);
    store<<<1, 128, 0, static_cast<cudaStream_t>(stream)>>>(part, now, table.to + begin);
    cuda::check(cudaGetLastError(), "store");
  }
  move_packed_cuda(batch, rows, PackedData<T>{}, /*to_steps=*/true, stream);
}

template void move_packed_cuda(const PackedBatch&, const PackedData<float>&,
                               const PackedData<float>&, bool, void*);
template void move_packed_cuda(const PackedBatch&, const PackedData<double>&,
                               const PackedData<double>&, bool, void*);
template void move_first_packed_cuda(const PackedBatch&, const PackedData<float>&,
                                     const PackedTable&, void*);
template void move_first_packed_cuda(const PackedBatch&, const PackedData<double>&,
                                     const PackedTable&, void*);

}  // namespace hdetach
