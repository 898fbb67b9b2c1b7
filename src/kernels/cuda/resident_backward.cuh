// The backward sweep: see resident_layout.cuh for who holds what. A block multiplies the gate
// gradients of its own units with their rows of w_hh, which gives a part of dh for every unit; what
// travels between blocks is these parts, a quarter of the words that the gate gradients would be.
// A step whose rows are all detached costs neither product nor exchange nor barrier.
#pragma once

#include "kernels/cuda/activations.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/resident.h"
#include "kernels/cuda/resident_exchange.cuh"
#include "kernels/cuda/resident_layout.cuh"

namespace hdetach::cuda {

// kPlain: no dc, c_scale or lengths, as in most training.
template <class L_, bool kPlain_>
struct Backward {
  using L = L_;
  static constexpr bool kPlain = kPlain_;
  // Tile (rank, k): rows group are the high halves of w_hh's columns for the 8 units of this warp's
  // number in block `rank`, rows group + 8 the low ones; its 16 k are gates (i, f) of the block's
  // own units 4k .. 4k + 3, then (g, o).
  static constexpr int kLocal = 2 * L::kWarps;  // k tiles of a block
  static constexpr int kTiles = L::kCluster * kLocal;
  using Weights = Fragments<kTiles, (kTiles < kMostKept ? kTiles : kMostKept)>;
  using Parts = Exchange<L, L::kWarps, L::kCluster * 32 * 4>;

  // Gate gradients of the block's warps in halves, each scaled by the warp, and for each warp and
  // row the inverse of that scale. Two of them, filled in turn.
  struct Operand {
    uint32_t gradients[kLocal][kTileWords];
    float inverse[L::kWarps][kRows];
  };
  struct Fixed {
    uint4 weights[Weights::kShared > 0 ? Weights::kShared : 1][L::kThreads];
    Operand operand[2];
    char parts[(Parts::kSharedBytes + 15) / 16 * 16];
  };
  // Saved state on its way. A thread reads only what it copied itself.
  struct Stage {
    float4 gates[L::kThreads];
    float c_before[L::kThreads];
    float dh[L::kThreads];
    float h_scale[L::kThreads];
    float dc[kPlain ? 1 : L::kThreads];
    float c_scale[kPlain ? 1 : L::kThreads];
  };
  // Detached steps are short: eight stages cover the memory's latency, fewer where memory is short.
  static constexpr int kFitting = (L::kSharedLimit - sizeof(Fixed)) / sizeof(Stage);
  static constexpr int kStages = kFitting < 8 ? kFitting : 8;
  static_assert(kStages >= 2, "shared memory is too small");
  struct Shared : Fixed {
    union {
      BlockRows<L> rows;  // until the weights are in fragments
      Stage stage[kStages];
    };
  };
};

// The operand of a k tile: pairs `pair` and pair + 4 of batch row `quad`, high halves, then low
// ones.
__device__ __forceinline__ int gradient_word(int pair, int quad) { return (quad * 4 + pair) * 4; }
__device__ __forceinline__ void read_gradients(const uint32_t* tile, int lane, uint32_t (&b)[2]) {
  const int group = lane / 4, quad = lane % 4;
  const uint2 both =
      *reinterpret_cast<const uint2*>(tile + gradient_word(quad, group / 2) + group % 2 * 2);
  b[0] = both.x;
  b[1] = both.y;
}

// Loads the warp's tiles of w_hh; returns what a product must be multiplied with. Every block has
// its own scale.
template <class F, class Place>
__device__ float load_backward(typename F::Weights& weights, typename F::Shared& shared,
                               const float* w_hh, const Place& at, int hidden) {
  using L = typename F::L;
  const float scale = shared.rows.load(w_hh, at.rank, hidden);
  weights.fill(&shared.weights[0][threadIdx.x], L::kThreads, [&](int tile, uint32_t(&a)[4]) {
    const int to = (tile / F::kLocal * L::kWarps + at.warp) * kUnits + at.group;
    const int from = tile % F::kLocal * 4 + at.quad;
    // More warps than columns: the last ones own none.
    const bool there = L::kAllWarps <= 2 * L::kKTiles || to < shared.rows.kColumns;
    const auto weight = [&](int gate) {
      return there ? shared.rows.weight[gate][from][to] * scale : 0.0f;
    };
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const HalfPairs split = split_f16(weight(2 * i), weight(2 * i + 1));
      a[2 * i] = split.high;
      a[2 * i + 1] = split.low;
    }
  });
  __syncthreads();  // the rows' memory is used again
  return inverse_power(scale);
}

template <class F>
__global__ void __launch_bounds__(F::L::kThreads, 1) backward_sweep(const BackwardSweep sweep) {
  using L = typename F::L;
  constexpr int kStages = F::kStages;
  extern __shared__ __align__(128) char shared_bytes[];
  auto& shared = *reinterpret_cast<typename F::Shared*>(shared_bytes);
  const BackwardArgs& a = sweep.args;
  const int steps = a.shape.steps, batch = a.shape.batch, hidden = a.shape.hidden;
  const Place<L> at(a.shape);
  const int tid = threadIdx.x;

  typename F::Weights weights;
  const float inverse = load_backward<F>(
      weights, shared, a.weights.w_hh + static_cast<int64_t>(at.replica) * 4 * hidden * hidden, at,
      hidden);

  const int64_t step_stride = static_cast<int64_t>(batch) * hidden;
  const int64_t last = (steps - 1) * step_stride;
  const int length =
      !F::kPlain && a.lengths && at.row_there ? static_cast<int>(a.lengths[at.line]) : steps;
  float c = at.there ? a.c[at.where + last] : 0.0f, dc = 0.0f, h_scale = 0.0f;

  const bool has_dh = a.dh != nullptr, has_scale = a.h_scale.data != nullptr;
  const float* scale_from = a.h_scale.data + at.replica * a.h_scale.replica_stride +
                            (steps - 1) * a.h_scale.step_stride +
                            (at.row_there ? at.row : 0) * a.h_scale.row_stride;
  int64_t from = at.where + last;  // what is copied next
  const auto copy_saved = [&](int t, typename F::Stage& stage) {
    if (t >= 0) {
      const bool within = F::kPlain || t < length, wanted = at.there && within;
      copy_async<16>(&stage.gates[tid], reinterpret_cast<const float4*>(a.gates) + from, wanted);
      if (t > 0) {
        // Also where the row has just ended: the next step back begins with it.
        copy_async<4>(&stage.c_before[tid], a.c + (from - step_stride),
                      at.there && (F::kPlain || t <= length));
      } else {
        const bool given = wanted && a.c0;
        copy_async<4>(&stage.c_before[tid], given ? a.c0 + at.line * hidden + at.unit : a.c, given);
      }
      if (has_dh) copy_async<4>(&stage.dh[tid], a.dh + from, wanted);
      if (has_scale) {
        copy_async<4>(&stage.h_scale[tid], scale_from, at.row_there && within);
        scale_from -= a.h_scale.step_stride;
      }
      if constexpr (!F::kPlain) {
        if (a.dc) copy_async<4>(&stage.dc[tid], a.dc + from, wanted);
        if (a.c_scale.data) {
          const bool scaled = at.row_there && within;
          const int64_t index = at.replica * a.c_scale.replica_stride + t * a.c_scale.step_stride +
                                at.row * a.c_scale.row_stride;
          copy_async<4>(&stage.c_scale[tid], a.c_scale.data + (scaled ? index : 0), scaled);
        }
      }
      from -= step_stride;
    }
    close_copy_group();
  };
  for (int i = 0; i < kStages; ++i) copy_saved(steps - 1 - i, shared.stage[i]);

  typename F::Parts parts(shared.parts, at.warp, at.lane == 0);
  uint32_t exchanges = 0;  // completed
  bool pending = false;    // the step after sends a gradient into this one
  int products = 0;

  // Of a step, everything that does not wait for the product: with dh and dc known,
  //   d(o) = dh * by_o,  dc += dh * by_c,  d(i, f, g) = dc * by_i, by_f, by_g.
  float by_i, by_f, by_g, by_o, by_c, keep, scale_here, dh_given, dc_given;
  bool keeps_c = true;
  const auto prepare = [&](const typename F::Stage& stage) {
    const float4 gate = stage.gates[tid];
    const float squashed = hyperbolic_tangent(c);
    c = stage.c_before[tid];
    by_o = squashed * gate.w * (1.0f - gate.w);
    by_c = gate.w * (1.0f - squashed * squashed);
    by_i = gate.z * gate.x * (1.0f - gate.x);
    by_f = c * gate.y * (1.0f - gate.y);
    by_g = gate.x * (1.0f - gate.z * gate.z);
    keep = gate.y;
    scale_here = has_scale ? stage.h_scale[tid] : 1.0f;
    dh_given = has_dh ? stage.dh[tid] : 0.0f;
    if constexpr (!F::kPlain) {
      dc_given = a.dc ? stage.dc[tid] : 0.0f;
      if (a.c_scale.data) {
        const float c_scale = stage.c_scale[tid];
        keeps_c = c_scale != 0.0f;
        keep *= c_scale;
      }
    }
  };

  // Hands on this step's gate gradients: dh of the step before, by parts, goes to whom it belongs.
  // That step is prepared while the tensor cores are busy; before the first there is none, and what
  // is prepared then is not used.
  const auto send_product = [&](const float4& d, const typename F::Stage& next) {
    auto& operand = shared.operand[exchanges & 1];
    const float most = fmaxf(fmaxf(fabsf(d.x), fabsf(d.y)), fmaxf(fabsf(d.z), fabsf(d.w)));
    const float scale = scale_to_power(most_of_row(most), kHalfPower);
    const HalfPairs first = split_f16(d.x * scale, d.y * scale);
    const HalfPairs second = split_f16(d.z * scale, d.w * scale);
    uint32_t* const to = operand.gradients[at.warp * 2 + at.group / 4];
    *reinterpret_cast<uint4*>(to + gradient_word(at.group % 4, at.quad)) =
        make_uint4(first.high, second.high, first.low, second.low);
    if (at.group == 0) operand.inverse[at.warp][at.quad] = inverse_power(scale);
    __syncthreads();
    float part[L::kCluster] = {};
#pragma unroll
    for (int w = 0; w < L::kWarps; ++w) {
      // Of both scales at once: gradients times scaled weights alone leave float32's range 2^14
      // early.
      const float unscale = operand.inverse[w][at.quad] * inverse;
      uint32_t b[2][2];
      read_gradients(operand.gradients[2 * w], at.lane, b[0]);
      read_gradients(operand.gradients[2 * w + 1], at.lane, b[1]);
#pragma unroll
      for (int rank = 0; rank < L::kCluster; ++rank) {
        float sum[4] = {};
        weights.multiply(sum, rank * F::kLocal + 2 * w, b[0]);
        weights.multiply(sum, rank * F::kLocal + 2 * w + 1, b[1]);
        part[rank] = fmaf(unscale, (sum[2] + sum[3]) + (sum[0] + sum[1]), part[rank]);
      }
      if (w == 0) prepare(next);
    }
#pragma unroll
    for (int rank = 0; rank < L::kCluster; ++rank) {
      parts.send(exchanges, rank, at.rank * 32 + at.lane, __float_as_uint(part[rank]));
    }
  };

  // h_scale * (gate gradients of the step after) w_hh, for this thread's unit.
  const auto take_product = [&] {
    const float* const mine = reinterpret_cast<const float*>(parts.receive(exchanges++));
    float total = mine[at.lane];
#pragma unroll
    for (int rank = 1; rank < L::kCluster; ++rank) total += mine[rank * 32 + at.lane];
    // A detached row takes nothing, not even a NaN.
    return h_scale != 0.0f ? h_scale * total : 0.0f;
  };

  wait_copy_groups<kStages - 1>();
  prepare(shared.stage[0]);
  int slot = 0;
  int64_t position = at.where + last;
  for (int t = steps - 1; t >= 0; --t) {
    float dh_here = dh_given, dc_here = dc;
    if constexpr (!F::kPlain) dc_here += dc_given;
    if (pending) dh_here += take_product();
    dc_here = fmaf(dh_here, by_c, dc_here);
    const bool within = F::kPlain || t < length;
    if (!within) dh_here = dc_here = 0.0f;
    const float4 d = make_float4(dc_here * by_i, dc_here * by_f, dc_here * by_g, dh_here * by_o);
    // As with h: where c is detached, not even a NaN goes on.
    dc = F::kPlain || keeps_c ? dc_here * keep : 0.0f;
    h_scale = at.row_there && within && (t > 0 || a.dh0) ? scale_here : 0.0f;
    products += h_scale != 0.0f;
    // Every warp holds every row of the cluster, so all of them decide alike.
    pending = __any_sync(kAllLanes, h_scale != 0.0f);
    const int next = slot + 1 == kStages ? 0 : slot + 1;
    wait_copy_groups<kStages - 2>();
    if (pending) {
      send_product(d, shared.stage[next]);
    } else {
      prepare(shared.stage[next]);
    }
    if (at.there) reinterpret_cast<float4*>(sweep.dgates)[position] = d;
    position -= step_stride;
    copy_saved(t - kStages, shared.stage[slot]);
    slot = next;
  }

  const float dh = pending ? take_product() : 0.0f;
  if (at.there) {
    if (a.dh0) a.dh0[at.line * hidden + at.unit] = dh;
    if (a.dc0) a.dc0[at.line * hidden + at.unit] = dc;
  }
  if (a.recurrent_products && at.rank == 0 && at.warp == 0 && at.group == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(a.recurrent_products),
              static_cast<unsigned long long>(products));
  }
  parts.finish();
}

}  // namespace hdetach::cuda
