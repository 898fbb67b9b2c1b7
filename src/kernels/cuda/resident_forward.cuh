// The forward sweep: see resident_layout.cuh for who holds what. At every step the warps of a
// cluster send each other h.
#pragma once

#include "kernels/cuda/activations.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/resident.h"
#include "kernels/cuda/resident_exchange.cuh"
#include "kernels/cuda/resident_layout.cuh"

namespace hdetach::cuda {

constexpr float kStateScale = 32768.0f;  // of h in halves: |h| < 1

// kInputs: so many inputs at most are multiplied with w_ih here, in the time that h travels; 0
// means that they come projected. Lengths go with projected inputs or a single one.
template <class L_, int kInputs_, bool kLengths_>
struct Forward {
  using L = L_;
  static constexpr int kInputs = kInputs_;
  static constexpr bool kLengths = kLengths_;
  static_assert(kInputs <= 1 || !kLengths, "a lane copies inputs of any row");
  // Tile ((k * 2 + pair) * 2 + half): rows are gates (i, f) or (g, o) of the warp's units, columns
  // the 16 units of k tile k, half 0 the high ones.
  static constexpr int kTiles = 4 * L::kKTiles;
  using Weights = Fragments<kTiles, (kTiles < kMostKept ? kTiles : kMostKept)>;
  using States = Exchange<L, 1, L::kKTiles * kTileWords * 4>;

  struct Fixed {
    uint4 weights[Weights::kShared > 0 ? Weights::kShared : 1][L::kThreads];
    char states[(States::kSharedBytes + 15) / 16 * 16];
  };
  // Inputs on their way. A thread reads what it copied itself; of several inputs, what its warp
  // did.
  static constexpr int kLine = 16;
  static_assert(kInputs <= kLine, "a line of inputs is too short");
  struct Stage {
    float4 projected[kInputs == 0 ? L::kThreads : 1];
    float x[kInputs == 1 ? L::kThreads : 1];
    alignas(16) float lines[kInputs > 1 ? L::kWarps : 1][kRows][kLine];
  };
  static constexpr int kFitting = (L::kSharedLimit - sizeof(Fixed)) / sizeof(Stage);
  static constexpr int kStages = kFitting < 4 ? kFitting : 4;
  static_assert(kStages >= 2, "shared memory is too small");
  struct Shared : Fixed {
    union {
      BlockRows<L> rows;  // until the weights are in fragments
      Stage stage[kStages];
    };
  };
};

// The operand of a k tile: the pair of k (2*pair, 2*pair + 1) of batch row `quad` as a word of high
// halves, then one of low. What a warp sends to another block lies side by side: scattered words
// took twice as long.
__device__ __forceinline__ int state_word(int pair, int quad) {
  return (pair >> 2) * 32 + quad * 8 + (pair & 3) * 2;
}
__device__ __forceinline__ void read_states(const char* tile, int lane, uint32_t (&b)[2]) {
  const int group = lane / 4, quad = lane % 4;
  const int word = state_word(quad, group / 2) + group % 2;
  b[0] = reinterpret_cast<const uint32_t*>(tile)[word];
  b[1] = reinterpret_cast<const uint32_t*>(tile)[word + 32];
}

// Loads the warp's rows of w_hh; returns what a product must be multiplied with.
template <class F, class Place>
__device__ float load_forward(typename F::Weights& weights, typename F::Shared& shared,
                              const float* w_hh, const Place& at, int hidden) {
  const float scale = shared.rows.load(w_hh, at.rank, hidden);
  weights.fill(&shared.weights[0][threadIdx.x], F::L::kThreads, [&](int tile, uint32_t(&a)[4]) {
    const int half = tile % 2, pair = tile / 2 % 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int gate = 2 * pair + (i & 1), k = tile / 4 * 16 + 2 * at.quad + (i >> 1) * 8;
      const float2 w = *reinterpret_cast<const float2*>(
          &shared.rows.weight[gate][at.warp * kUnits + at.group][k]);
      const HalfPairs split = split_f16(w.x * scale, w.y * scale);
      a[i] = half == 0 ? split.high : split.low;
    }
  });
  __syncthreads();  // the rows' memory is used again
  return inverse_power(scale);
}

template <class F>
__global__ void __launch_bounds__(F::L::kThreads, 1) forward_sweep(const ForwardSweep sweep) {
  using L = typename F::L;
  constexpr int kStages = F::kStages;
  extern __shared__ __align__(128) char shared_bytes[];
  auto& shared = *reinterpret_cast<typename F::Shared*>(shared_bytes);
  const ForwardArgs& a = sweep.args;
  const int steps = a.shape.steps, batch = a.shape.batch, hidden = a.shape.hidden;
  const Place<L> at(a.shape);
  const int tid = threadIdx.x;

  typename F::Weights weights;
  const float inverse = load_forward<F>(
      weights, shared, a.weights.w_hh + static_cast<int64_t>(at.replica) * 4 * hidden * hidden, at,
      hidden);
  const int inputs = a.shape.input;
  float input_weight[F::kInputs + 1][4], bias[4] = {};
  if constexpr (F::kInputs > 0) {
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      const int64_t r = static_cast<int64_t>(at.replica) * 4 * hidden + g * hidden + at.unit;
#pragma unroll
      for (int i = 0; i < F::kInputs; ++i) {
        input_weight[i][g] = at.unit_there && i < inputs ? a.weights.w_ih[r * inputs + i] : 0.0f;
      }
      bias[g] = at.unit_there && a.weights.b_ih ? a.weights.b_ih[r] : 0.0f;
      if (at.unit_there && a.weights.b_hh) bias[g] += a.weights.b_hh[r];
    }
  }

  const int length = F::kLengths && at.row_there ? static_cast<int>(a.lengths[at.line]) : steps;
  const int64_t step_stride = static_cast<int64_t>(batch) * hidden;
  const int64_t start = at.line * hidden + at.unit;
  float c = at.there && a.c0 ? a.c0[start] : 0.0f;
  const float h0 = at.there && a.h0 ? a.h0[start] : 0.0f;
  // h0 may have any size: its scale is its own.
  float most = 0;
#pragma unroll
  for (int i = 0; i < 2 * L::kKTiles; ++i) {
    const int k = at.group + 8 * i;
    if (at.row_there && a.h0 && k < hidden) most = fmaxf(most, fabsf(a.h0[at.line * hidden + k]));
  }
  const float h0_scale = scale_to_power(most_of_row(most), kHalfPower);

  // What is copied next: a thread's own projected inputs or single one, or two places of its warp's
  // lines. What is not there is copied as zero.
  constexpr int kCopies = F::kInputs > 1 ? kRows * F::kLine / 32 : 1;
  const float* from[kCopies];
  bool wanted[kCopies];
  void* to[kCopies];  // in the first stage
  const int64_t from_stride = F::kInputs == 0 ? 4 * step_stride : batch * inputs;
  const int64_t x_start = static_cast<int64_t>(at.replica) * steps * batch;
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    if constexpr (F::kInputs == 0) {
      from[i] = sweep.projected + 4 * at.where;
      wanted[i] = at.there;
      to[i] = &shared.stage[0].projected[tid];
    } else if constexpr (F::kInputs == 1) {
      from[i] = a.x + (at.row_there ? x_start + at.row : 0);
      wanted[i] = at.row_there;
      to[i] = &shared.stage[0].x[tid];
    } else {
      const int place = at.lane + 32 * i, input = place % F::kLine;
      const int row = at.row - at.quad + place / F::kLine;
      wanted[i] = row < batch && input < inputs;
      from[i] = a.x + (wanted[i] ? (x_start + row) * inputs + input : 0);
      to[i] = &shared.stage[0].lines[at.warp][0][place];
    }
  }
  const auto copy_input = [&](int t, int stage) {
    if (F::kInputs > 1) __syncwarp();  // all have read what was there
    if (t < steps) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        copy_async<F::kInputs == 0 ? 16 : 4>(
            static_cast<char*>(to[i]) + stage * sizeof(typename F::Stage), from[i],
            wanted[i] && (!F::kLengths || t < length));
        from[i] += from_stride;
      }
    }
    close_copy_group();
  };
  // A warp beyond the last unit tells nobody how far it is, so nobody would wait for it: it must
  // not read what is sent.
  const int warp = at.rank * L::kWarps + at.warp;
  const bool works = L::kAllWarps <= 2 * L::kKTiles || warp < 2 * L::kKTiles;
  for (int t = 0; works && t < kStages; ++t) copy_input(t, t);
  const auto wait_input = [&] {
    wait_copy_groups<kStages - 1>();
    if (F::kInputs > 1) __syncwarp();
  };

  typename F::States states(shared.states, 0, tid == 0);
  if (!works) {
    states.finish();
    return;
  }
  // The halves of units 2j and 2j + 1 make a word: the even one's thread writes the high halves,
  // the odd one's the low.
  const bool odd = at.group & 1;
  const int word = warp / 2 * kTileWords + state_word(warp % 2 * 4 + at.group / 2, at.quad) + odd;
  const auto send = [&](uint32_t count, float scaled) {
    const __half high = __float2half_rn(scaled);
    const __half low = __float2half_rn(scaled - __half2float(high));
    const uint32_t own = __half_as_ushort(high) | uint32_t(__half_as_ushort(low)) << 16;
    const uint32_t other = __shfl_xor_sync(kAllLanes, own, 4);
    const uint32_t halves = odd ? __byte_perm(other, own, 0x7632) : __byte_perm(own, other, 0x5410);
#pragma unroll
    for (int rank = 0; rank < L::kCluster; ++rank) states.send(count, rank, word, halves);
  };
  send(0, h0 * h0_scale);

  int stage = 0;
  int64_t position = at.where;
  wait_input();
  for (int t = 0; t < steps; ++t) {
    const char* const h_before = states.receive(t);
    const typename F::Stage& here = shared.stage[stage];
    // A large bias must not cost each of several inputs a rounding: it comes after them.
    float4 input = F::kInputs == 0   ? here.projected[tid]
                   : F::kInputs == 1 ? make_float4(bias[0], bias[1], bias[2], bias[3])
                                     : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* const x = F::kInputs == 1 ? &here.x[tid] : here.lines[at.warp][at.quad];

    // Tensor cores truncate when they add to an accumulator. Four tiles are summed there, high and
    // low halves apart, before ordinary additions take over.
    float gates[4];
    constexpr int kTogether = 4;
#pragma unroll
    for (int k0 = 0; k0 < L::kKTiles; k0 += 2 * kTogether) {
      float sum[2][2][2][4] = {};  // of tile group, pair of gates, half
      uint32_t b[2 * kTogether][2];
#pragma unroll
      for (int k = 0; k < 2 * kTogether; ++k) {
        if (k0 + k >= L::kKTiles) continue;
        read_states(h_before + (k0 + k) * kTileWords * 4, at.lane, b[k]);
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const int tile = k0 + side * kTogether + k;
          if (tile >= L::kKTiles) continue;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            weights.multiply(sum[side][i / 2][i % 2], tile * 4 + i, b[side * kTogether + k]);
          }
        }
        // The inputs' product, four of them at a time, while the tensor cores are busy.
#pragma unroll
        for (int i = 4 * (k0 + k); i < F::kInputs && i < 4 * (k0 + k + 1); ++i) {
          input.x = fmaf(input_weight[i][0], x[i], input.x);
          input.y = fmaf(input_weight[i][1], x[i], input.y);
          input.z = fmaf(input_weight[i][2], x[i], input.z);
          input.w = fmaf(input_weight[i][3], x[i], input.w);
        }
      }
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        if (k0 + side * kTogether >= L::kKTiles) continue;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
          const float* const high = sum[side][g / 2][0] + g % 2 * 2;
          const float* const low = sum[side][g / 2][1] + g % 2 * 2;
          const float part = (low[0] + low[1]) + (high[0] + high[1]);
          gates[g] = k0 + side == 0 ? part : gates[g] + part;
        }
      }
    }

    if (F::kInputs > 1) {
      input.x += bias[0];
      input.y += bias[1];
      input.z += bias[2];
      input.w += bias[3];
    }
    const float scale = inverse * (t == 0 ? inverse_power(h0_scale) : 1.0f / kStateScale);
    float4 gate;
    gate.x = sigmoid(fmaf(gates[0], scale, input.x));
    gate.y = sigmoid(fmaf(gates[1], scale, input.y));
    gate.z = hyperbolic_tangent(fmaf(gates[2], scale, input.z));
    gate.w = sigmoid(fmaf(gates[3], scale, input.w));
    c = fmaf(gate.y, c, gate.x * gate.z);
    float h = gate.w * hyperbolic_tangent(c);
    // Padding must stay zero, or an infinite input would make it NaN and, by the product, all else.
    const bool within = at.there && (!F::kLengths || t < length);
    c = within ? c : 0.0f;
    h = within ? h : 0.0f;
    if (t + 1 < steps) send(t + 1, h * kStateScale);
    // The rest is done while h travels.
    if (at.there) {
      a.h[position] = h;
      a.c[position] = c;
      if (a.gates) reinterpret_cast<float4*>(a.gates)[position] = gate;
    }
    position += step_stride;
    copy_input(t + kStages, stage);
    stage = stage + 1 == kStages ? 0 : stage + 1;
    wait_input();
  }
  states.finish();
}

}  // namespace hdetach::cuda
