// The softmax head and its gradients. A block of 128 threads takes 128 rows as two tiles of 64 (of
// any H, 128 units at a time); up to 128 units, h is read from memory once.
//
//   logits    two threads for each row, units in turn, weights broadcast from shared memory
//   softmax   the same threads; logits are never stored, their gradients stay in shared memory
//   dh, dW    a thread for each four units, a warp for every fourth row: weights and sums of dW
//             are in registers, the row's dlogits are broadcast
//
// 3 * classes * H multiplications a row against 8 * H bytes: on an H200 the bytes are the limit up
// to about ten classes. Sums: float32 within a block, double across blocks (optimiser.cu).
#include <stdexcept>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/check.h"
#include "train/cuda/update.h"

namespace hdetach::train {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kTileRows = kThreads / 2, kUnits = 128;
constexpr int kStride = kUnits + 8;  // two threads a row, 16 bytes each: no bank conflicts
constexpr int kTiles = 2;            // of a block, where all units fit into one tile

template <int kClasses>
struct Shared {
  static constexpr int kPad = (kClasses + 3) / 4 * 4;
  float tile[kTileRows * kStride];
  float weight[kClasses * kUnits];
  float dlogit[kTileRows * kPad];
  float dbias[kWarps * kPad];
  double loss[kWarps];
};

__device__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ float4 scaled(float d, float4 a, float4 sum) {
  return {fmaf(d, a.x, sum.x), fmaf(d, a.y, sum.y), fmaf(d, a.z, sum.z), fmaf(d, a.w, sum.w)};
}

// One replica's share of HeadArgs.
struct Head {
  int rows, hidden, classes;
  const float* h;
  float* dh;
  const float* weight;
  const float* bias;
  const uint8_t* targets;
};

// Units [unit, unit + kUnits) of the rows from `first` on; zero where there are none.
__device__ void load_tile(const Head& head, int first, int unit, float* tile) {
  if (head.hidden % 4 == 0) {
    for (int i = threadIdx.x; i < kTileRows * (kUnits / 4); i += kThreads) {
      const int row = i / (kUnits / 4), u = i % (kUnits / 4) * 4;
      const bool there = first + row < head.rows && unit + u < head.hidden;
      const float* const from =
          head.h + (there ? static_cast<int64_t>(first + row) * head.hidden + unit + u : 0);
      cuda::copy_async<16>(tile + row * kStride + u, from, there);
    }
    cuda::close_copy_group();
    cuda::wait_copy_groups<0>();
    return;
  }
  for (int i = threadIdx.x; i < kTileRows * kUnits; i += kThreads) {
    const int row = i / kUnits, u = i % kUnits;
    const bool there = first + row < head.rows && unit + u < head.hidden;
    tile[row * kStride + u] =
        there ? head.h[static_cast<int64_t>(first + row) * head.hidden + unit + u] : 0.0f;
  }
}

template <int kClasses>
__device__ void load_weight(const Head& head, int unit, float* weight) {
  for (int i = threadIdx.x; i < kClasses * kUnits; i += kThreads) {
    const int k = i / kUnits, u = i % kUnits;
    const bool there = k < head.classes && unit + u < head.hidden;
    weight[i] = there ? head.weight[k * head.hidden + unit + u] : 0.0f;
  }
}

// Adds the products of this thread's half of the units in the tile.
template <int kClasses>
__device__ void add_logits(const Shared<kClasses>& s, float (&logit)[kClasses]) {
  const int row = threadIdx.x / 2, half = threadIdx.x % 2;
#pragma unroll 4
  for (int u = half * 4; u < kUnits; u += 8) {
    const float4 h = *reinterpret_cast<const float4*>(s.tile + row * kStride + u);
#pragma unroll
    for (int k = 0; k < kClasses; ++k) {
      logit[k] = dot(h, *reinterpret_cast<const float4*>(s.weight + k * kUnits + u), logit[k]);
    }
  }
}

// From the logits of this thread's row to the gradients of the mean loss; returns the row's loss.
template <int kClasses>
__device__ float softmax(const Head& head, int first, Shared<kClasses>& s,
                         float (&logit)[kClasses]) {
  constexpr int kPad = Shared<kClasses>::kPad;
  const int row = threadIdx.x / 2, half = threadIdx.x % 2;
  const bool there = first + row < head.rows;
  const int target = there ? head.targets[first + row] : 0;
  float most = -INFINITY;
#pragma unroll
  for (int k = 0; k < kClasses; ++k) {
    logit[k] += __shfl_xor_sync(~0u, logit[k], 1);
    logit[k] = k < head.classes ? logit[k] + head.bias[k] : -INFINITY;
    most = fmaxf(most, logit[k]);
  }
  float wanted = 0, sum = 0;
#pragma unroll
  for (int k = 0; k < kClasses; ++k) {
    if (k == target) wanted = logit[k] - most;
    logit[k] = expf(logit[k] - most);
    sum += logit[k];
  }
  const float per_row = 1.0f / static_cast<float>(head.rows);
  if (half == 0) {
#pragma unroll
    for (int k = 0; k < kPad; ++k) {
      float d = 0;
      if (k < kClasses) d = (logit[k < kClasses ? k : 0] / sum - (k == target)) * per_row;
      s.dlogit[row * kPad + k] = there && k < head.classes ? d : 0.0f;
    }
  }
  return there && half == 0 ? logf(sum) - wanted : 0.0f;
}

// dh of the tile's units, and this warp's share of dW and dbias.
template <int kClasses>
__device__ void add_gradients(const Head& head, int first, int unit, const Shared<kClasses>& s,
                              float4 (&dweight)[kClasses], float& dbias) {
  constexpr int kPad = Shared<kClasses>::kPad;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, u = lane * 4;
  float4 weight[kClasses];
#pragma unroll
  for (int k = 0; k < kClasses; ++k) {
    weight[k] = *reinterpret_cast<const float4*>(s.weight + k * kUnits + u);
  }
#pragma unroll 2
  for (int row = warp; row < kTileRows; row += kWarps) {
    const float4 h = *reinterpret_cast<const float4*>(s.tile + row * kStride + u);
    float4 dh = {0, 0, 0, 0};
#pragma unroll
    for (int quad = 0; quad < kPad / 4; ++quad) {
      const float4 d = *reinterpret_cast<const float4*>(s.dlogit + row * kPad + quad * 4);
      const float part[4] = {d.x, d.y, d.z, d.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int k = quad * 4 + j;
        if (k >= kClasses) break;
        dh = scaled(part[j], weight[k], dh);
        dweight[k] = scaled(part[j], h, dweight[k]);
      }
    }
    if (unit == 0 && lane < kPad) dbias += s.dlogit[row * kPad + lane];
    if (first + row >= head.rows) continue;
    float* const to = head.dh + static_cast<int64_t>(first + row) * head.hidden + unit + u;
    if (head.hidden % 4 == 0) {
      if (unit + u < head.hidden) *reinterpret_cast<float4*>(to) = dh;
    } else {
      const float part[4] = {dh.x, dh.y, dh.z, dh.w};
      for (int j = 0; j < 4; ++j) {
        if (unit + u + j < head.hidden) to[j] = part[j];
      }
    }
  }
}

// The warps' sums of dW, added in their order. The tile is free by now and holds them.
template <int kClasses>
__device__ void write_dweight(const Head& head, int unit, Shared<kClasses>& s,
                              const float4 (&dweight)[kClasses], float* out) {
  static_assert(kWarps * kClasses * kUnits <= kTileRows * kStride, "the sums fit into the tile");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kClasses; ++k) {
    *reinterpret_cast<float4*>(s.tile + (warp * kClasses + k) * kUnits + lane * 4) = dweight[k];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kClasses * kUnits; i += kThreads) {
    const int k = i / kUnits, u = i % kUnits;
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += s.tile[w * kClasses * kUnits + i];
    if (k < head.classes && unit + u < head.hidden) out[k * head.hidden + unit + u] = sum;
  }
}

template <int kClasses>
__global__ void __launch_bounds__(kThreads, kClasses > 10 ? 3 : 4)
    head_gradient(const HeadArgs a, int tiles) {
  constexpr int kPad = Shared<kClasses>::kPad;
  extern __shared__ float4 memory[];
  Shared<kClasses>& s = *reinterpret_cast<Shared<kClasses>*>(memory);
  const int64_t r = blockIdx.y;
  if (!a.replicas[r].active) return;
  const Head head{static_cast<int>(a.rows),    static_cast<int>(a.hidden),
                  static_cast<int>(a.classes), a.h + r * a.stride,
                  a.dh + r * a.stride,         a.weight + r * a.classes * a.hidden,
                  a.bias + r * a.classes,      a.targets + r * a.rows};
  const int64_t part = r * gridDim.x + blockIdx.x;
  float* const out = a.parts + part * (a.classes * a.hidden + a.classes);
  const int begin = blockIdx.x * tiles * kTileRows;

  float4 dweight[kClasses];
  float dbias = 0;
  double loss = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int first = begin + tile * kTileRows;
    float logit[kClasses] = {};
    for (int unit = 0; unit < head.hidden; unit += kUnits) {
      __syncthreads();  // the tile before is done with
      load_tile(head, first, unit, s.tile);
      if (tile == 0 || tiles == 1) load_weight<kClasses>(head, unit, s.weight);
      __syncthreads();
      add_logits(s, logit);
    }
    loss += softmax(head, first, s, logit);
    __syncthreads();
    for (int unit = 0; unit < head.hidden; unit += kUnits) {
      if (head.hidden > kUnits) {
        __syncthreads();
        load_tile(head, first, unit, s.tile);
        load_weight<kClasses>(head, unit, s.weight);
        __syncthreads();
      }
      if (tile == 0) {
        for (int k = 0; k < kClasses; ++k) dweight[k] = {0, 0, 0, 0};
      }
      add_gradients(head, first, unit, s, dweight, dbias);
      if (tile == tiles - 1) write_dweight<kClasses>(head, unit, s, dweight, out);
    }
  }

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int step = 16; step > 0; step /= 2) loss += __shfl_xor_sync(~0u, loss, step);
  if (lane == 0) s.loss[warp] = loss;
  if (lane < kPad) s.dbias[warp * kPad + lane] = dbias;
  __syncthreads();
  if (threadIdx.x < head.classes) {
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += s.dbias[w * kPad + threadIdx.x];
    out[a.classes * a.hidden + threadIdx.x] = sum;
  }
  if (threadIdx.x == 0) {
    double sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += s.loss[w];
    a.losses[part] = sum;
  }
}

int tiles_of(int64_t hidden) { return hidden <= kUnits ? kTiles : 1; }

template <int kClasses>
void launch(const HeadArgs& args, cudaStream_t stream) {
  constexpr size_t kBytes = sizeof(Shared<kClasses>);
  cuda::check(cudaFuncSetAttribute(head_gradient<kClasses>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
              "cudaFuncSetAttribute");
  const dim3 grid(static_cast<unsigned>(head_parts(args.rows, args.hidden)),
                  static_cast<unsigned>(args.count));
  head_gradient<kClasses><<<grid, kThreads, kBytes, stream>>>(args, tiles_of(args.hidden));
}

}  // namespace

int64_t head_parts(int64_t rows, int64_t hidden) {
  const int64_t of_block = tiles_of(hidden) * kTileRows;
  return (rows + of_block - 1) / of_block;
}

void launch_head(const HeadArgs& args, cudaStream_t stream) {
  if (args.classes <= 10) return launch<10>(args, stream);
  if (args.classes <= kMostClasses) return launch<kMostClasses>(args, stream);
  throw std::runtime_error("the CUDA trainer takes at most 16 classes");
}

}  // namespace hdetach::train
