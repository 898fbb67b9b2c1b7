// The inner products. A tile is Rows x Cols vectors of accumulators kept in registers.
#pragma once

#include "kernels/cpu/layout.inl"

namespace {

// Terms summed in one register before the sum is put aside and a new one begun: long sums in
// float32 would leave the error budget.
constexpr int64_t kRun = 64;

template <int Rows, int Cols>
inline __attribute__((always_inline)) void clear(V (&acc)[Rows][Cols]) {
  for (int m = 0; m < Rows; ++m) {
    for (int n = 0; n < Cols; ++n) acc[m][n] = splat(0.0f);
  }
}

// acc[m][n] += sum over k of row[m][k] * panel[k][n]
template <int Rows, int Cols>
inline __attribute__((always_inline)) void accumulate(V (&acc)[Rows][Cols],
                                                      const float* const (&row)[Rows],
                                                      const float* panel, int64_t depth) {
  for (int64_t k = 0; k < depth; ++k, panel += Cols * kLanes) {
    V w[Cols];
    for (int n = 0; n < Cols; ++n) w[n] = load(panel + n * kLanes);
    for (int m = 0; m < Rows; ++m) {
      const V a = splat(row[m][k]);
      for (int n = 0; n < Cols; ++n) acc[m][n] = fma(a, w[n], acc[m][n]);
    }
  }
}

// Sums put aside, in memory: the registers are for the run.
template <int Rows, int Cols>
struct Totals {
  alignas(64) float sum[Rows][Cols][kLanes];
  bool any = false;
};

template <int Rows, int Cols>
inline __attribute__((always_inline)) void end_run(V (&acc)[Rows][Cols],
                                                   Totals<Rows, Cols>& totals) {
  for (int m = 0; m < Rows; ++m) {
    for (int n = 0; n < Cols; ++n) {
      float* sum = totals.sum[m][n];
      store(sum, totals.any ? add(load(sum), acc[m][n]) : acc[m][n]);
    }
  }
  totals.any = true;
  clear(acc);
}

// accumulate() in runs; the first goes on with what acc holds.
template <int Rows, int Cols>
inline __attribute__((always_inline)) void accumulate_runs(V (&acc)[Rows][Cols],
                                                           Totals<Rows, Cols>& totals,
                                                           const float* const (&row)[Rows],
                                                           const float* panel, int64_t depth) {
  accumulate(acc, row, panel, least(kRun, depth));
  for (int64_t k = kRun; k < depth; k += kRun) {
    end_run(acc, totals);
    const float* from[Rows];
    for (int m = 0; m < Rows; ++m) from[m] = row[m] + k;
    accumulate(acc, from, panel + k * Cols * kLanes, least(kRun, depth - k));
  }
}

template <int Rows, int Cols>
inline __attribute__((always_inline)) void add_totals(V (&acc)[Rows][Cols],
                                                      const Totals<Rows, Cols>& totals) {
  if (!totals.any) return;
  for (int m = 0; m < Rows; ++m) {
    for (int n = 0; n < Cols; ++n) acc[m][n] = add(acc[m][n], load(totals.sum[m][n]));
  }
}

// acc[m][n] += sum over k of row[k][m] * panel[k][n]: the outer products of weight gradients.
template <int Rows>
inline __attribute__((always_inline)) void accumulate_outer(V (&acc)[Rows][4],
                                                            const float* const* row, int64_t column,
                                                            const float* panel, int64_t depth) {
  for (int64_t k = 0; k < depth; ++k, panel += kBlock) {
    V w[4];
    for (int n = 0; n < 4; ++n) w[n] = load(panel + n * kLanes);
    const float* value = row[k] + column;
    for (int m = 0; m < Rows; ++m) {
      const V a = splat(value[m]);
      for (int n = 0; n < 4; ++n) acc[m][n] = fma(a, w[n], acc[m][n]);
    }
  }
}

template <int N>
struct Constant {
  static constexpr int value = N;
};

// Calls body(Constant<count>()) for a count in 1..Most known only at run time.
template <int Most, typename Body>
inline void with_constant(int64_t count, const Body& body) {
  if constexpr (Most > 1) {
    if (count < Most) return with_constant<Most - 1>(count, body);
  }
  body(Constant<Most>());
}

}  // namespace
