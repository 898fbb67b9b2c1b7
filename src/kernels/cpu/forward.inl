// Forward sweep. A task owns its rows for the whole sequence: no barrier, no exchange between
// steps. A Product (vector_product.inl, amx_product.inl) computes the pre-activations block by
// block and hands each row's to finish_forward while they are in registers or first-level cache.
// Limits: none on the sizes; with fewer rows than workers, the spare workers idle.
#pragma once

#include "kernels/cpu/activations.inl"
#include "kernels/cpu/layout.inl"

namespace {

using hdetach::ForwardArgs;

struct ForwardSpace {
  float* bias;    // [blocks][4][lanes], b_ih + b_hh
  int32_t* rows;  // [B] each task's rows that are still running
};

inline ForwardSpace carve_forward(Arena& arena, const LstmShape& shape) {
  ForwardSpace space;
  space.bias = arena.take<float>(block_count(shape.hidden) * kBlock);
  space.rows = arena.take<int32_t>(shape.batch);
  return space;
}

inline void pack_bias(const ForwardArgs& args, int64_t block, float* to) {
  const int64_t hidden = args.shape.hidden;
  for (int64_t i = 0; i < kBlock; ++i) {
    const int64_t unit = block * kLanes + i % kLanes, gate = i / kLanes * hidden + unit;
    float sum = 0.0f;
    if (unit < hidden && args.weights.b_ih != nullptr) sum += args.weights.b_ih[gate];
    if (unit < hidden && args.weights.b_hh != nullptr) sum += args.weights.b_hh[gate];
    to[i] = sum;
  }
}

inline const float* h_before(const ForwardArgs& args, int64_t t) {
  return t == 0 ? args.h0 : args.h + (t - 1) * args.shape.batch * args.shape.hidden;
}

// One row's gates of one block, from pre-activations to the new state.
inline void finish_forward(const ForwardArgs& args, const V (&gates)[4], int64_t t, int64_t row,
                           int64_t block) {
  const int64_t hidden = args.shape.hidden, batch = args.shape.batch;
  const int64_t unit = block * kLanes, at = t * batch + row;
  const int lanes = block_lanes(hidden, block);
  const float* c_before = (t == 0 ? args.c0 + row * hidden : args.c + (at - batch) * hidden) + unit;
  const V i = sigmoid(gates[0]), f = sigmoid(gates[1]);
  const V g = hyperbolic_tangent(gates[2]), o = sigmoid(gates[3]);
  const V c = fma(f, load_first(c_before, lanes), mul(i, g));
  store_first(args.c + at * hidden + unit, c, lanes);
  store_first(args.h + at * hidden + unit, mul(o, hyperbolic_tangent(c)), lanes);
  if (args.gates == nullptr) return;
  float* keep = args.gates + at * 4 * hidden + unit;
  store_first(keep, i, lanes);
  store_first(keep + hidden, f, lanes);
  store_first(keep + 2 * hidden, g, lanes);
  store_first(keep + 3 * hidden, o, lanes);
}

// Lists the rows of `range` that run at step t and clears the states of those that have ended.
inline int64_t running_rows(const ForwardArgs& args, Range range, int64_t t, int32_t* rows) {
  const int64_t hidden = args.shape.hidden;
  int64_t count = 0;
  for (int64_t b = range.begin; b < range.end; ++b) {
    if (args.lengths == nullptr || t < args.lengths[b]) {
      rows[count++] = static_cast<int32_t>(b);
      continue;
    }
    const int64_t at = (t * args.shape.batch + b) * hidden;
    for (int64_t unit = 0; unit < hidden; ++unit) args.h[at + unit] = args.c[at + unit] = 0.0f;
  }
  return count;
}

template <typename Product>
struct ForwardJob {
  const ForwardArgs& args;
  ForwardSpace space;
  typename Product::ForwardSpace product;
  int tasks;
};

template <typename Product>
void forward_pack_task(void* context, int block) {
  const auto& job = *static_cast<const ForwardJob<Product>*>(context);
  pack_bias(job.args, block, job.space.bias + block * kBlock);
  Product::pack_forward(job.args, job.product, block);
}

template <typename Product>
void forward_rows_task(void* context, int task) {
  const auto& job = *static_cast<const ForwardJob<Product>*>(context);
  const ForwardArgs& args = job.args;
  const Range range = owned_rows(args.shape, args.lengths, job.tasks, task);
  int32_t* rows = job.space.rows + range.begin;
  for (int64_t t = 0; t < args.shape.steps; ++t) {
    const int64_t count = running_rows(args, range, t, rows);
    if (count == 0) continue;
    Product::forward_step(job, task, range, t, rows, count);
  }
  Product::end_task();
}

template <typename Product>
size_t forward_workspace(const LstmShape& shape, int workers) {
  Arena arena{nullptr};
  carve_forward(arena, shape);
  Product::carve_forward(arena, shape, workers);
  return arena.used;
}

template <typename Product>
void lstm_forward(const ForwardArgs& args) {
  Arena arena{static_cast<char*>(args.workspace)};
  const ForwardSpace space = carve_forward(arena, args.shape);
  ForwardJob<Product> job{args, space,
                          Product::carve_forward(arena, args.shape, args.workers.count),
                          static_cast<int>(least(args.workers.count, args.shape.batch))};
  args.workers.run(static_cast<int>(block_count(args.shape.hidden)), forward_pack_task<Product>,
                   &job);
  args.workers.run(job.tasks, forward_rows_task<Product>, &job);
}

}  // namespace
