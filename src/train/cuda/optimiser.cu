// From gradients to weights in two launches: measure (the norm and the decision), then Adam. A
// block takes a piece of one tensor. The block of a replica that ends last adds up the sums of all
// its blocks, in their order, whichever block that is: so the decision needs no launch of its own.
#include <cmath>

#include "train/adam_rule.h"
#include "train/cuda/optimiser.cuh"
#include "train/cuda/update.h"

namespace hdetach::train {
namespace {

static_assert(kHeadPiece == 32, "a warp takes a head piece");

// What other blocks have written: not from this block's cache.
__device__ double sum_of(const double* values, int64_t count, double* shared) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += __ldcg(values + i);
  return block_sum(sum, shared);
}

// A head piece: the parts are added in double, warp w those numbered w, w + 8, ..., then the warps.
__device__ double complete_head(const MeasureArgs& a, const Piece& piece, int64_t r) {
  __shared__ double sums[kWarps][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* const parts =
      a.parts + r * a.head_parts * a.part_size + piece.part + piece.first + lane;
  double sum = 0;
  if (lane < piece.count) {
#pragma unroll 4
    for (int64_t g = warp; g < a.head_parts; g += kWarps) sum += parts[g * a.part_size];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || lane >= piece.count) return 0;
  sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += sums[w][lane];
  const float gradient = static_cast<float>(sum);
  a.gradients[piece.gradient + r * piece.numel + piece.first + lane] = gradient;
  return static_cast<double>(gradient) * gradient;
}

__device__ double squares_of(const MeasureArgs& a, const Piece& piece, int64_t r) {
  const float* const gradient = a.gradients + piece.gradient + r * piece.numel + piece.first;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < piece.count; i += kThreads) {
    sum += static_cast<double>(gradient[i]) * gradient[i];
  }
  return sum;
}

// As Trainer::update and Adam::step decide.
__device__ void decide(const MeasureArgs& a, int64_t r, double loss, double norm) {
  Replica& replica = a.replicas[r];
  const bool applied = isfinite(loss) && isfinite(norm);
  const double factor = replica.clip / (norm + 1e-6);
  const bool clipped = applied && replica.clip > 0 && factor < 1;
  ++replica.update;
  if (replica.detach > 0 && !replica.damp) {
    replica.drawn += a.draws_per_layer * (replica.separate ? a.layers : 1);
  }
  Decision decision{};
  if (applied) {
    const double t = static_cast<double>(++replica.adam_steps);
    decision.apply = 1;
    decision.gradient_scale = clipped ? static_cast<float>(factor) : 1.0f;
    decision.step = static_cast<float>(replica.lr / (1 - pow(AdamRule::kBeta1, t)));
    decision.root_correction = static_cast<float>(sqrt(1 - pow(AdamRule::kBeta2, t)));
  } else if (replica.stop_on_divergence) {
    replica.active = 0;
  }
  a.decisions[r] = decision;
  a.records[r * a.capacity + replica.records++] = {loss, norm, applied, clipped};
}

__global__ void __launch_bounds__(kThreads) measure(const MeasureArgs a) {
  __shared__ double shared[kWarps];
  __shared__ bool last;
  const int64_t r = blockIdx.y, block = blockIdx.x;
  if (!a.replicas[r].active) return;
  const Piece piece = a.pieces[block];
  const double sum =
      block_sum(piece.part >= 0 ? complete_head(a, piece, r) : squares_of(a, piece, r), shared);
  double* const squares = a.squares + r * a.piece_count;
  if (threadIdx.x == 0) {
    squares[block] = sum;
    __threadfence();
    last = atomicAdd(a.finished + r, 1u) == a.piece_count - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  const double norm = sqrt(sum_of(squares, a.piece_count, shared));
  const double loss = sum_of(a.losses + r * a.head_parts, a.head_parts, shared);
  if (threadIdx.x != 0) return;
  a.finished[r] = 0;
  decide(a, r, loss / static_cast<double>(a.rows), norm);
}

__global__ void __launch_bounds__(kThreads) adam(const AdamArgs a) {
  const int64_t r = blockIdx.y;
  const Decision decision = a.decisions[r];
  if (!decision.apply) return;
  const Piece piece = a.pieces[blockIdx.x];
  const int64_t at = r * piece.numel + piece.first;
  for (int64_t i = threadIdx.x; i < piece.count; i += kThreads) {
    const float g = a.gradients[piece.gradient + at + i] * decision.gradient_scale;
    const int64_t w = piece.weight + at + i;
    adam_rule(g, decision.step, decision.root_correction, a.first_moments[w], a.second_moments[w],
              a.weights[w]);
  }
}

dim3 grid(int64_t pieces, int64_t replicas) {
  return dim3(static_cast<unsigned>(pieces), static_cast<unsigned>(replicas));
}

}  // namespace

void launch_measure(const MeasureArgs& args, cudaStream_t stream) {
  measure<<<grid(args.piece_count, args.count), kThreads, 0, stream>>>(args);
}

void launch_adam(const AdamArgs& args, cudaStream_t stream) {
  adam<<<grid(args.piece_count, args.count), kThreads, 0, stream>>>(args);
}

}  // namespace hdetach::train
