// Products with w_ih over all steps at once: projected = x w_ih^T + b_ih + b_hh before the forward
// sweep, dx = dgates w_ih after the backward sweep.
//
// Strategy: tiled GEMMs (gemm_tile.cuh), 128 x 128 a block, 8 warps of 64 x 32, four stages of
// copies. Where there are few tiles and much to sum (50 rows, 2560 inputs, H=512: 16 tiles), a
// cluster of up to eight blocks shares a tile's sum (split_sum.cuh). Up to 16 inputs there is
// little to multiply beside 65 MB of gates (T=320, B=100, H=128): forward, a thread keeps the
// weights of a unit's four gates in registers and walks down the rows, 16 bytes out for each;
// backward, the tiles are 16 columns wide.
//
// Limits: too_large() (sizes.h); 16 byte copies where inputs are a multiple of four, else 4 byte
// ones.
// Measured alone, by CUDA events (results/cuda-probes-h200.txt): copy300's projection 26 us, 2.5
// TB/s; caption's 133 us, 40 TFLOP/s of float32.
#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/sizes.h"
#include "kernels/cuda/split_sum.cuh"
#include "kernels/cuda/weight_gradients.h"

namespace hdetach::cuda {
namespace {

constexpr int kSmallInput = 16;

struct Projection {
  const float* x;     // [R, M, I]
  const float* w_ih;  // [R, 4H, I]
  const float* b_ih;  // [R, 4H] or null
  const float* b_hh;
  float* out;  // [R, M, H, 4]
  int rows;    // M = T B, or those of the launch
  int input, hidden;
  int64_t x_apart, out_apart;  // of replicas
  bool aligned;                // rows of x and w_ih start at 16 bytes

  void skip_rows(int64_t count) {
    x += count * input;
    out += count * 4 * hidden;
    rows -= static_cast<int>(count);
  }
  __device__ void move_to_replica(int64_t r) {
    x += r * x_apart;
    w_ih += r * 4 * hidden * input;
    if (b_ih != nullptr) b_ih += r * 4 * hidden;
    if (b_hh != nullptr) b_hh += r * 4 * hidden;
    out += r * out_apart;
  }
  __device__ float bias(int row) const {
    return (b_ih == nullptr ? 0.0f : b_ih[row]) + (b_hh == nullptr ? 0.0f : b_hh[row]);
  }
};

constexpr int kSmallThreads = 128, kSmallRows = 64;

template <int kInput>  // inputs, rounded up to a multiple of 4
__global__ void __launch_bounds__(kSmallThreads) project_small(Projection p) {
  __shared__ float4 x[kSmallRows][kInput / 4];
  p.move_to_replica(blockIdx.z);
  const int first = blockIdx.x * kSmallRows, rows = min(kSmallRows, p.rows - first);
  float* flat = reinterpret_cast<float*>(x);
  for (int i = threadIdx.x; i < kSmallRows * kInput; i += kSmallThreads) {
    const int row = i / kInput, k = i % kInput;
    const bool valid = row < rows && k < p.input;
    flat[i] = valid ? p.x[static_cast<int64_t>(first + row) * p.input + k] : 0.0f;
  }
  const int unit = blockIdx.y * kSmallThreads + threadIdx.x;
  float w[kInput][4], bias[4];
#pragma unroll
  for (int gate = 0; gate < 4; ++gate) {
    const int row = gate * p.hidden + min(unit, p.hidden - 1);
    bias[gate] = p.bias(row);
#pragma unroll
    for (int k = 0; k < kInput; ++k) {
      w[k][gate] = k < p.input ? p.w_ih[static_cast<int64_t>(row) * p.input + k] : 0.0f;
    }
  }
  __syncthreads();
  if (unit >= p.hidden) return;
  float4* out = reinterpret_cast<float4*>(p.out) + static_cast<int64_t>(first) * p.hidden + unit;
#pragma unroll 2
  for (int row = 0; row < rows; ++row, out += p.hidden) {
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < kInput; k += 4) {
      const float4 v = x[row][k / 4];
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) {
        sum[gate] = fmaf(v.x, w[k][gate], sum[gate]);
        sum[gate] = fmaf(v.y, w[k + 1][gate], sum[gate]);
        sum[gate] = fmaf(v.z, w[k + 2][gate], sum[gate]);
        sum[gate] = fmaf(v.w, w[k + 3][gate], sum[gate]);
      }
    }
    *out = {sum[0] + bias[0], sum[1] + bias[1], sum[2] + bias[2], sum[3] + bias[3]};
  }
}

constexpr int kTileRows = 128, kTileColumns = 128, kStages = 4, kThreads = 256;
using Rows = AlongK<kTileRows>;
using Columns = AlongK<kTileColumns>;
constexpr int kStageFloats = Rows::kFloats + Columns::kFloats;
static_assert(kThreads * 64 <= kStages * kStageFloats, "a block's sums fit the stages");

// Column n of the result is gate n % 4 of unit n / 4.
__global__ void __launch_bounds__(kThreads, 1) project_tiles(Projection p) {
  extern __shared__ float4 shared[];
  float* stages = reinterpret_cast<float*>(shared);
  p.move_to_replica(blockIdx.z);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const SplitSum share = SplitSum::of_cluster((p.input + kTileK - 1) / kTileK);
  const int first_column = share.tile_x() * kTileColumns, first_row = blockIdx.y * kTileRows;
  const int columns = 4 * p.hidden;
  const auto x_line = [&](int line) {
    const int row = first_row + line;
    return row < p.rows ? p.x + static_cast<int64_t>(row) * p.input : nullptr;
  };
  const auto w_line = [&](int line) {
    const int n = first_column + line;
    if (n >= columns) return static_cast<const float*>(nullptr);
    return p.w_ih + static_cast<int64_t>(n % 4 * p.hidden + n / 4) * p.input;
  };

  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  Accumulators<4, 4> sum;
  pipeline<kStages>(
      share.count,
      [&](int stage, int tile) {
        float* rows = stages + stage * kStageFloats;
        const int k = (share.first + tile) * kTileK;
        Rows::fill<kThreads>(rows, thread, k, p.input, p.aligned, p.x, x_line);
        Columns::fill<kThreads>(rows + Rows::kFloats, thread, k, p.input, p.aligned, p.x, w_line);
      },
      [&](int stage, int) {
        if (first_row + warp_row >= p.rows) return;  // half of a tile, where there are few rows
        const float* rows = stages + stage * kStageFloats;
#pragma unroll 2
        for (int step = 0; step < kTileK / 8; ++step) {
          multiply_add(sum, Rows::rows<4>(rows, warp_row, step, lane),
                       Columns::columns<4>(rows + Rows::kFloats, warp_column, step, lane));
        }
      });
  share.add_up<kThreads>(sum, shared);

#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int n = first_column + warp_column + Columns::column<4>(j, 0, lane);
    if (n >= columns) continue;  // an even number of columns: the neighbour is there as well
    const float bias[2] = {p.bias(n % 4 * p.hidden + n / 4),
                           p.bias((n + 1) % 4 * p.hidden + n / 4)};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + warp_row + Rows::row(i, half, lane);
        if (row >= p.rows || !share.owns(i, half)) continue;
        const float* v = sum.value[i][j] + 2 * half;
        *reinterpret_cast<float2*>(p.out + static_cast<int64_t>(row) * columns + n) = {
            v[0] + bias[0], v[1] + bias[1]};
      }
    }
  }
}

struct InputGradient {
  const float* dgates;  // [R, T B, 4H]
  const float* w_ih;    // [R, 4H, I]
  float* dx;            // [R, T B, I]
  int rows;             // T B, or those of the launch
  int hidden, input;
  int64_t dgates_apart, dx_apart;  // of replicas
  bool aligned;                    // rows of w_ih and dx start at 16 bytes

  void skip_rows(int64_t count) {
    dgates += count * 4 * hidden;
    dx += count * input;
    rows -= static_cast<int>(count);
  }
};

template <int kColumns>
__global__ void __launch_bounds__(kThreads, 1) input_products(InputGradient p) {
  using Rows = AlongK<kTileRows>;
  using Columns = AcrossK<kColumns>;
  constexpr int kStage = Rows::kFloats + Columns::kFloats;
  constexpr int kWarpsN = kColumns == kTileColumns ? 4 : 1, kWarpsM = 8 / kWarpsN;
  constexpr int kTilesM = kTileRows / kWarpsM / 16, kTilesN = kColumns / kWarpsN / 8;
  constexpr bool kSplit = kColumns == kTileColumns;
  static_assert(!kSplit || kThreads * 64 <= kStages * kStage, "a block's sums fit the stages");
  extern __shared__ float4 shared[];
  float* stages = reinterpret_cast<float*>(shared);
  const int64_t replica = blockIdx.z;
  const int gates = 4 * p.hidden;
  p.dgates += replica * p.dgates_apart;
  p.w_ih += replica * gates * p.input;
  p.dx += replica * p.dx_apart;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int tiles = (gates + kTileK - 1) / kTileK;
  const SplitSum share = kSplit ? SplitSum::of_cluster(tiles) : SplitSum::alone(tiles);
  const int first_column = share.tile_x() * kColumns, first_row = blockIdx.y * kTileRows;
  const int warp_row = warp % kWarpsM * 16 * kTilesM, warp_column = warp / kWarpsM * 8 * kTilesN;

  Accumulators<kTilesM, kTilesN> sum;
  pipeline<kStages>(
      share.count,
      [&](int stage, int tile) {
        float* row_tile = stages + stage * kStage;
        const int first_k = (share.first + tile) * kTileK;
        Rows::fill<kThreads>(row_tile, thread, first_k, gates, true, p.dgates, [&](int line) {
          const int row = first_row + line;
          return row < p.rows ? p.dgates + static_cast<int64_t>(row) * gates : nullptr;
        });
        Columns::template fill<kThreads>(
            row_tile + Rows::kFloats, thread, first_column, p.input, p.aligned, p.dgates,
            [&](int line) -> const float* {
              const int k = first_k + line;
              if (k >= gates) return nullptr;
              return p.w_ih + static_cast<int64_t>(k % 4 * p.hidden + k / 4) * p.input;
            });
      },
      [&](int stage, int) {
        const float* row_tile = stages + stage * kStage;
#pragma unroll 2
        for (int step = 0; step < kTileK / 8; ++step) {
          multiply_add(sum, Rows::template rows<kTilesM>(row_tile, warp_row, step, lane),
                       Columns::template columns<kTilesN>(row_tile + Rows::kFloats, warp_column,
                                                          step, lane));
        }
      });
  if constexpr (kSplit) share.add_up<kThreads>(sum, shared);

#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int row = first_row + warp_row + Rows::row(i, v / 2, lane);
      if (row >= p.rows || !share.owns(i, v / 2)) continue;
      float* out = p.dx + static_cast<int64_t>(row) * p.input;
      const auto column = [&](int j) {
        return first_column + warp_column + Columns::template column<kTilesN>(j, v % 2, lane);
      };
      if constexpr (kTilesN == 4) {
        if (p.aligned) {
          if (column(0) < p.input) {
            *reinterpret_cast<float4*>(out + column(0)) = {sum.value[i][0][v], sum.value[i][1][v],
                                                           sum.value[i][2][v], sum.value[i][3][v]};
          }
          continue;
        }
      }
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        if (column(j) < p.input) out[column(j)] = sum.value[i][j][v];
      }
    }
  }
}

unsigned parts(int total, int part) { return static_cast<unsigned>((total + part - 1) / part); }

constexpr int kBlocksWanted = 132;
constexpr int kLeastTiles = 4;  // of k: a block's share is worth its start-up

// Blocks that share a tile's sum. A function of the sizes alone, replicas apart, and so are the
// bits.
unsigned cluster_size(dim3 tiles, int k) {
  const int64_t all = static_cast<int64_t>(tiles.x) * tiles.y, k_tiles = parts(k, kTileK);
  int cluster = 1;
  while (cluster < kMostToSplit && 2 * cluster * all <= kBlocksWanted &&
         2 * cluster * kLeastTiles <= k_tiles) {
    cluster *= 2;
  }
  return static_cast<unsigned>(cluster);
}

// tiles: columns, rows, replicas.
template <typename Params>
void launch(void (*kernel)(Params), dim3 tiles, unsigned cluster, int stage_floats, Params p,
            cudaStream_t stream) {
  constexpr unsigned kMostAlongY = 65535;  // of a grid; more rows take several launches
  const int bytes = kStages * stage_floats * static_cast<int>(sizeof(float));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "cudaFuncSetAttribute(tiles)");
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = cluster > 1 ? 1 : 0;
  for (unsigned first = 0; first < tiles.y; first += kMostAlongY) {
    config.gridDim = dim3(tiles.x * cluster, std::min(tiles.y - first, kMostAlongY), tiles.z);
    check(cudaLaunchKernelEx(&config, kernel, p), "launch of tiles");
    p.skip_rows(int64_t{kMostAlongY} * kTileRows);
  }
}

}  // namespace

void project_inputs(const LstmArgs& args, float* projected) {
  const LstmShape& s = args.shape;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  Projection p{};
  p.x = args.x;
  p.w_ih = args.weights.w_ih;
  p.b_ih = args.weights.b_ih;
  p.b_hh = args.weights.b_hh;
  p.out = projected;
  p.rows = static_cast<int>(s.steps * s.batch);
  p.x_apart = s.steps * s.batch * s.input;
  p.out_apart = s.steps * s.batch * 4 * s.hidden;
  p.input = static_cast<int>(s.input);
  p.hidden = static_cast<int>(s.hidden);
  p.aligned = p.input % 4 == 0 && starts_at_16_bytes(p.x) && starts_at_16_bytes(p.w_ih);
  const auto replicas = static_cast<unsigned>(s.replicas);

  if (p.input <= kSmallInput) {
    const dim3 grid(parts(p.rows, kSmallRows), parts(p.hidden, kSmallThreads), replicas);
    const auto kernel = p.input <= 4    ? project_small<4>
                        : p.input <= 8  ? project_small<8>
                        : p.input <= 12 ? project_small<12>
                                        : project_small<16>;
    kernel<<<grid, kSmallThreads, 0, stream>>>(p);
  } else {
    const dim3 tiles(parts(4 * p.hidden, kTileColumns), parts(p.rows, kTileRows), replicas);
    launch(project_tiles, tiles, cluster_size(tiles, p.input), kStageFloats, p, stream);
  }
  check(cudaGetLastError(), "launch of project_inputs");
}

void gate_gradients_to_inputs_and_weights(const BackwardArgs& args, const float* dgates,
                                          void* workspace) {
  weight_gradients(args, dgates, workspace);
  if (args.dx == nullptr) return;
  const LstmShape& s = args.shape;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  const auto replicas = static_cast<unsigned>(s.replicas);
  InputGradient p{};
  p.dgates = dgates;
  p.w_ih = args.weights.w_ih;
  p.dx = args.dx;
  p.rows = static_cast<int>(s.steps * s.batch);
  p.dgates_apart = s.steps * s.batch * 4 * s.hidden;
  p.dx_apart = s.steps * s.batch * s.input;
  p.hidden = static_cast<int>(s.hidden);
  p.input = static_cast<int>(s.input);
  p.aligned = s.input % 4 == 0 && starts_at_16_bytes(p.w_ih) && starts_at_16_bytes(p.dx);
  const int columns = s.input <= 16 ? 16 : kTileColumns;
  const dim3 tiles(parts(p.input, columns), parts(p.rows, kTileRows), replicas);
  if (columns == 16) {
    launch(input_products<16>, tiles, /*cluster=*/1,
           AlongK<kTileRows>::kFloats + AcrossK<16>::kFloats, p, stream);
  } else {
    launch(input_products<kTileColumns>, tiles, cluster_size(tiles, 4 * p.hidden),
           AlongK<kTileRows>::kFloats + AcrossK<kTileColumns>::kFloats, p, stream);
  }
}

}  // namespace hdetach::cuda
