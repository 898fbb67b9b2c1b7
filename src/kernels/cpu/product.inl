// The inner products. A tile is Rows x Cols vectors of accumulators kept in registers.
#pragma once

#include "kernels/cpu/layout.inl"

namespace {

// Terms summed in one register before the partial sums are added: short runs keep float32 sums
// within the error budget, and 64 terms leave the addition under 2% of the work.
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

// total[m][n] += the same sum, taken in runs.
template <int Rows, int Cols>
inline __attribute__((always_inline)) void accumulate_runs(V (&total)[Rows][Cols],
                                                           const float* const (&row)[Rows],
                                                           const float* panel, int64_t depth) {
  const float* from[Rows];
  for (int m = 0; m < Rows; ++m) from[m] = row[m];
  for (int64_t k = 0; k < depth; k += kRun) {
    V acc[Rows][Cols];
    clear(acc);
    accumulate(acc, from, panel, least(kRun, depth - k));
    panel += kRun * Cols * kLanes;
    for (int m = 0; m < Rows; ++m) {
      from[m] += kRun;
      for (int n = 0; n < Cols; ++n) total[m][n] = add(total[m][n], acc[m][n]);
    }
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
