#include "kernels/packing.h"

#include "kernels/cuda/check.h"

namespace hdetach {
namespace {

constexpr int kRowsPerBlock = 8;  // a warp each

template <typename T, bool kToSteps>
__global__ void move_rows(PackedBatch batch, PackedData<T> data) {
  const int64_t row = int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.y;
  if (row >= batch.steps * batch.batch) return;
  const int64_t b = row % batch.batch;
  if (batch.order != nullptr && (batch.order[b] < 0 || batch.order[b] >= batch.batch)) __trap();
  move_row<T, kToSteps>(batch, data, row / batch.batch, b, threadIdx.x, 32);
}

}  // namespace

template <typename T>
void move_packed_cuda(const PackedBatch& batch, const PackedData<T>& data, bool to_steps,
                      void* stream) {
  const int64_t blocks = (batch.steps * batch.batch + kRowsPerBlock - 1) / kRowsPerBlock;
  const auto kernel = to_steps ? move_rows<T, true> : move_rows<T, false>;
  kernel<<<blocks, dim3(32, kRowsPerBlock), 0, static_cast<cudaStream_t>(stream)>>>(batch, data);
  cuda::check(cudaGetLastError(), "packing");
}

template void move_packed_cuda(const PackedBatch&, const PackedData<float>&, bool, void*);
template void move_packed_cuda(const PackedBatch&, const PackedData<double>&, bool, void*);

}  // namespace hdetach
