// Gate gradients times what the gates were made of, over all steps at once: dw_hh, dw_ih and both
// db.
//
// Strategy: one product [4H, T B] x [T B, columns] in blocks of 128 x 128. The sum over T B (32,000
// for copy300) is split over about as many blocks as the GPU has SMs; each leaves its part in the
// workspace, and a second kernel adds the parts in double, in order, and puts them in torch's row
// order. The columns are h[t-1], by halves (gemm_halves.cuh), and, so that the gate gradients are
// read once, 16 more: a one for the bias and, up to 15 of them, the inputs. More inputs have a pass
// of their own, which writes the result itself where there is but one part. All columns
// are always computed: bits do not depend on what is asked for.
//
// Limits: too_large() (sizes.h). 4H and H are padded to the tiles.
// Measured alone, by CUDA events; figures and what bounds them are in docs/kernels.md.
#include "kernels/cuda/weight_gradients.h"

#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/recurrent_weight_products.cuh"
#include "kernels/cuda/sizes.h"
#include "kernels/cuda/weight_products.cuh"

namespace hdetach::cuda {
namespace {

constexpr int kBlocksWanted = 132;
constexpr int kLeastSum = 128;  // a block's part of the sum is worth its start-up

size_t part_floats(const GradientPlan& plan, int64_t hidden) {
  return static_cast<size_t>(4 * hidden) * plan.part_columns;
}

GradientPlan make_plan(const LstmShape& s, int64_t columns, int extra) {
  GradientPlan plan{};
  plan.columns = static_cast<int>(columns);
  plan.extra = extra;
  plan.part_columns = 4 * parts(columns, 4) + extra;
  plan.row_tiles = parts(4 * s.hidden, kGradientTile);
  plan.column_tiles = parts(columns, kGradientTile);
  const int64_t sum = s.steps * s.batch;
  const int64_t wanted = std::max(1, kBlocksWanted / (plan.row_tiles * plan.column_tiles));
  const int64_t splits = std::min<int64_t>(wanted, parts(sum, kLeastSum));
  plan.split_k = kTileK * parts(parts(sum, splits), kTileK);
  plan.splits = parts(sum, plan.split_k);
  return plan;
}

GradientPlan recurrent_plan(const LstmShape& s) {
  return make_plan(s, s.hidden, recurrent_weights::kExtra);
}
GradientPlan input_plan(const LstmShape& s) { return make_plan(s, s.input, 0); }

// Where the sums go; null is not wanted.
struct Sums {
  const float* partial;               // [R, splits, 4H, part_columns]
  float *main, *inputs;               // [R, 4H, columns], [R, 4H, I]
  float *bias_of_inputs, *bias_of_h;  // [R, 4H], the same numbers
  int hidden, input;
  bool fused;
  GradientPlan plan;

  __device__ void put(int64_t replica, int m, int n, float value) const {
    const int extra = n - (plan.part_columns - plan.extra);  // column beside the main ones, from 0
    const int fused_inputs = fused ? input : 0;
    const int64_t row = replica * 4 * hidden + m % 4 * hidden + m / 4;
    if (extra < 0) {
      if (main != nullptr && n < plan.columns) main[row * plan.columns + n] = value;
    } else if (extra < fused_inputs) {
      if (inputs != nullptr) inputs[row * input + extra] = value;
    } else if (extra == fused_inputs) {
      if (bias_of_inputs != nullptr) bias_of_inputs[row] = value;
      if (bias_of_h != nullptr) bias_of_h[row] = value;
    }
  }
};

// Four neighbours a thread, and the parts dealt to four threads: many loads at a time.
constexpr int kAddQuads = 64, kAddThreads = 4;

__global__ void __launch_bounds__(kAddQuads* kAddThreads) add_parts(Sums s) {
  __shared__ double sums[kAddThreads][4][kAddQuads];
  const int n_columns = s.plan.part_columns, quads = s.hidden * n_columns;
  const int quad = blockIdx.x * kAddQuads + threadIdx.x;
  const int64_t replica = blockIdx.y;
  double sum[4] = {};
  cudaGridDependencySynchronize();
  if (quad < quads) {
    const float4* from =
        reinterpret_cast<const float4*>(s.partial) + replica * s.plan.splits * quads + quad;
#pragma unroll 9
    for (int i = threadIdx.y; i < s.plan.splits; i += kAddThreads) {
      const float4 v = __ldg(from + static_cast<int64_t>(i) * quads);
      sum[0] += v.x;
      sum[1] += v.y;
      sum[2] += v.z;
      sum[3] += v.w;
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) sums[threadIdx.y][e][threadIdx.x] = sum[e];
  __syncthreads();
  // Each of the quad's threads finishes one of the four.
  if (quad >= quads) return;
  const int element = 4 * quad + threadIdx.y;
  double total = 0.0;
#pragma unroll
  for (int i = 0; i < kAddThreads; ++i) total += sums[i][threadIdx.y][threadIdx.x];
  s.put(replica, element / n_columns, element % n_columns, static_cast<float>(total));
}

void launch(void (*kernel)(WeightProduct), dim3 grid, int threads, int bytes,
            const WeightProduct& p, cudaStream_t stream) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "cudaFuncSetAttribute(weight gradients)");
  kernel<<<grid, threads, bytes, stream>>>(p);
  check(cudaGetLastError(), "launch of weight gradients");
}

// Its launch overlaps the end of the product before it.
void launch_add_parts(const Sums& sums, unsigned replicas, cudaStream_t stream) {
  cudaLaunchAttribute overlap;
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  const auto floats = static_cast<int64_t>(part_floats(sums.plan, sums.hidden));
  config.gridDim = dim3(static_cast<unsigned>(parts(floats, 4 * kAddQuads)), replicas);
  config.blockDim = dim3(kAddQuads, kAddThreads);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, add_parts, sums), "launch of add_parts");
}

void run_weight_gradient(const WeightProduct& product, const Sums& sums, unsigned replicas,
                         cudaStream_t stream) {
  const GradientPlan& plan = product.plan;
  const dim3 grid(static_cast<unsigned>(plan.splits),
                  static_cast<unsigned>(plan.row_tiles * plan.column_tiles), replicas);
  if (plan.extra == 0) {
    launch(input_weights::multiply, grid, kGradientThreads, input_weights::kBytes, product, stream);
  } else {
    launch(recurrent_weights::multiply, grid, recurrent_weights::kThreads,
           recurrent_weights::kBytes, product, stream);
  }
  if (product.direct == nullptr) launch_add_parts(sums, replicas, stream);
}

}  // namespace

size_t weight_gradient_workspace(const LstmShape& shape) {
  const GradientPlan recurrent = recurrent_plan(shape), inputs = input_plan(shape);
  const size_t floats = std::max(recurrent.splits * part_floats(recurrent, shape.hidden),
                                 inputs.splits * part_floats(inputs, shape.hidden));
  return static_cast<size_t>(shape.replicas) * floats * sizeof(float);
}

void weight_gradients(const BackwardArgs& args, const float* dgates, void* workspace) {
  const LstmShape& s = args.shape;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  const auto replicas = static_cast<unsigned>(s.replicas);
  WeightProduct product{};
  product.dgates = dgates;
  product.h = args.h;
  product.h0 = args.h0;
  product.x = args.x;
  product.lengths = args.lengths;
  product.partial = static_cast<float*>(workspace);
  product.sum = static_cast<int>(s.steps * s.batch);
  product.batch = static_cast<int>(s.batch);
  product.hidden = static_cast<int>(s.hidden);
  product.input = static_cast<int>(s.input);
  const bool fused = s.input <= kFusedInput;

  if (args.dw_hh != nullptr || args.db_ih != nullptr || args.db_hh != nullptr ||
      (fused && args.dw_ih != nullptr)) {
    product.plan = recurrent_plan(s);
    product.aligned =
        s.hidden % 4 == 0 && starts_at_16_bytes(args.h) && starts_at_16_bytes(args.h0);
    run_weight_gradient(product,
                        {product.partial, args.dw_hh, args.dw_ih, args.db_ih, args.db_hh,
                         product.hidden, product.input, fused, product.plan},
                        replicas, stream);
  }
  if (!fused && args.dw_ih != nullptr) {
    product.plan = input_plan(s);
    product.aligned = s.input % 4 == 0 && starts_at_16_bytes(args.x);
    // The same bits: a sum that began at zero is not -0.
    if (product.plan.splits == 1 && s.input % 4 == 0 && starts_at_16_bytes(args.dw_ih)) {
      product.direct = args.dw_ih;
    }
    run_weight_gradient(product,
                        {product.partial, args.dw_ih, nullptr, nullptr, nullptr, product.hidden,
                         product.input, false, product.plan},
                        replicas, stream);
  }
}

}  // namespace hdetach::cuda
