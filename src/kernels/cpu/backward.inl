// Backward sweep, in chunks of steps. First each task walks its own rows back through the chunk:
// gate gradients, then dh = dgates * w_hh for the rows whose scale is not 0. Then all tasks share
// the chunk's weight gradients by output, while the gate gradients are still in cache. Gate
// gradients stand as [block][slot][4 gates][lanes], slot = running (step, row) pair: one store
// serves both products. Each output is summed by one task in an order that depends on the sizes
// alone, so any number of workers gives the same bits.
#pragma once

#include "kernels/cpu/activations.inl"
#include "kernels/cpu/layout.inl"

namespace {

using hdetach::BackwardArgs;
using hdetach::ScaleView;

constexpr int64_t kChunkRows = 256;  // (step, row) pairs a chunk aims at
constexpr int64_t kSavedPart = 8;    // its gate gradients take at most this part of the saved gates

struct BackwardSpace {
  int64_t chunk_steps;
  int64_t slots;        // odd distance between blocks, so that they do not share cache sets
  float* dgates;        // [blocks][slots][4][lanes]
  float* dh;            // [B][blocks * lanes] what step t + 1 sends into h[t]
  float* dc;            // [B][blocks * lanes]
  float* dweights;      // [blocks][I + H][4][lanes]
  float* dbias;         // [blocks][4][lanes]
  const float** x_row;  // [slots]
  const float** h_row;  // [slots] h[t - 1]
  int32_t* slot;        // [chunk_steps][B] slot of a (step, row) pair, -1 past the row's length
  int32_t* rows;        // [B] each task's running rows
  int32_t* kept;        // [B] those whose recurrent product is wanted
  int64_t* products;    // [workers]
};

inline BackwardSpace carve_backward(Arena& arena, const LstmShape& shape, int workers) {
  const int64_t blocks = block_count(shape.hidden), batch = shape.batch;
  BackwardSpace space;
  const int64_t few_steps = shape.steps * shape.hidden / (kSavedPart * blocks * kLanes);
  space.chunk_steps = most(1, least(few_steps, kChunkRows / batch));
  space.slots = (space.chunk_steps * batch) | 1;
  space.dgates = arena.take<float>(blocks * space.slots * kBlock);
  space.dh = arena.take<float>(batch * blocks * kLanes);
  space.dc = arena.take<float>(batch * blocks * kLanes);
  space.dweights = arena.take<float>(blocks * (shape.input + shape.hidden) * kBlock);
  space.dbias = arena.take<float>(blocks * kBlock);
  space.x_row = arena.take<const float*>(space.slots);
  space.h_row = arena.take<const float*>(space.slots);
  space.slot = arena.take<int32_t>(space.chunk_steps * batch);
  space.rows = arena.take<int32_t>(batch);
  space.kept = arena.take<int32_t>(batch);
  space.products = arena.take<int64_t>(workers);
  return space;
}

inline float scale_at(const ScaleView& scale, int64_t t, int64_t row) {
  return scale.data == nullptr ? 1.0f : scale.data[t * scale.step_stride + row * scale.row_stride];
}

// What every Product sees of the sweep.
struct BackwardState {
  const BackwardArgs& args;
  BackwardSpace space;
  int tasks;
  int64_t first_step = 0, last_step = 0;  // the chunk, both inclusive
  int64_t used_slots = 0;

  int64_t slot(int64_t t, int64_t row) const {
    return space.slot[(t - first_step) * args.shape.batch + row];
  }
  // Gate gradients of one slot in one block.
  float* dgates(int64_t block, int64_t slot) const {
    return space.dgates + (block * space.slots + slot) * kBlock;
  }
};

template <typename Product>
struct BackwardJob : BackwardState {
  typename Product::BackwardSpace product;
};

// One row's gate gradients at step t, all blocks.
inline void backward_row(const BackwardState& job, int64_t t, int64_t row) {
  const BackwardArgs& args = job.args;
  const BackwardSpace& space = job.space;
  const int64_t hidden = args.shape.hidden, batch = args.shape.batch;
  const int64_t at = t * batch + row, padded = block_count(hidden) * kLanes;
  const float* c_before = t == 0 ? args.c0 + row * hidden : args.c + (at - batch) * hidden;
  const float* gates = args.gates + at * 4 * hidden;
  const V one = splat(1.0f);
  const float c_scale = scale_at(args.c_scale, t, row);
  const int64_t slot = job.slot(t, row);

  for (int64_t block = 0; block < block_count(hidden); ++block) {
    const int64_t unit = block * kLanes;
    const int lanes = block_lanes(hidden, block);
    const V i = load_first(gates + unit, lanes), f = load_first(gates + hidden + unit, lanes);
    const V g = load_first(gates + 2 * hidden + unit, lanes);
    const V o = load_first(gates + 3 * hidden + unit, lanes);
    const V tanh_c = hyperbolic_tangent(load_first(args.c + at * hidden + unit, lanes));
    float* dh_carry = space.dh + row * padded + unit;
    float* dc_carry = space.dc + row * padded + unit;
    V dh = load(dh_carry), dc = load(dc_carry);
    if (args.dh != nullptr) dh = add(dh, load_first(args.dh + at * hidden + unit, lanes));
    if (args.dc != nullptr) dc = add(dc, load_first(args.dc + at * hidden + unit, lanes));

    dc = fma(mul(dh, o), fnma(tanh_c, tanh_c, one), dc);
    const V di = mul(mul(dc, g), mul(i, sub(one, i)));
    const V df = mul(mul(dc, load_first(c_before + unit, lanes)), mul(f, sub(one, f)));
    const V dg = mul(mul(dc, i), fnma(g, g, one));
    const V d_o = mul(mul(dh, tanh_c), mul(o, sub(one, o)));
    // A detached row takes nothing, not even an infinity.
    store(dc_carry, c_scale == 0.0f ? splat(0.0f) : mul(mul(dc, f), splat(c_scale)));
    float* to = job.dgates(block, slot);
    store(to, di);
    store(to + kLanes, df);
    store(to + 2 * kLanes, dg);
    store(to + 3 * kLanes, d_o);
  }
}

template <typename Product>
void backward_step(const BackwardJob<Product>& job, int task, Range range, int64_t t) {
  const BackwardArgs& args = job.args;
  const int64_t batch = args.shape.batch, hidden = args.shape.hidden, input = args.shape.input;
  const int64_t padded = block_count(hidden) * kLanes;
  const bool recur = t > 0 || args.dh0 != nullptr;
  int32_t* rows = job.space.rows + range.begin;
  int32_t* kept = job.space.kept + range.begin;
  int64_t count = 0, keep = 0;
  for (int64_t b = range.begin; b < range.end; ++b) {
    if (job.slot(t, b) < 0) {
      for (int64_t i = 0; args.dx != nullptr && i < input; ++i) {
        args.dx[(t * batch + b) * input + i] = 0.0f;
      }
      continue;
    }
    rows[count++] = static_cast<int32_t>(b);
    backward_row(job, t, b);
    if (recur && scale_at(args.h_scale, t, b) != 0.0f) {
      kept[keep++] = static_cast<int32_t>(b);
    } else {
      for (int64_t unit = 0; unit < padded; ++unit) job.space.dh[b * padded + unit] = 0.0f;
    }
  }
  job.space.products[task] += keep;
  Product::hidden_product(job, task, range, t, kept, keep, [&](int64_t b, int64_t unit, V v) {
    store(job.space.dh + b * padded + unit, mul(v, splat(scale_at(args.h_scale, t, b))));
  });
  if (args.dx == nullptr) return;
  Product::input_product(job, task, range, t, rows, count, [&](int64_t b, int64_t column, V v) {
    store_first(args.dx + (t * batch + b) * input + column, v,
                static_cast<int>(least(kLanes, input - column)));
  });
}

template <typename Product>
void backward_rows_task(void* context, int task) {
  const auto& job = *static_cast<const BackwardJob<Product>*>(context);
  const Range range = owned_rows(job.args.shape, job.args.lengths, job.tasks, task);
  for (int64_t t = job.last_step; t >= job.first_step; --t) {
    backward_step(job, task, range, t);
  }
  Product::end_task();
}

// dbias of one block += the chunk's gate gradients, summed in short runs like every other sum.
inline void bias_sums(const BackwardState& job, int64_t block) {
  constexpr int64_t kShort = 8, kLong = 64;
  float* to = job.space.dbias + block * kBlock;
  for (int64_t first = 0; first < job.used_slots; first += kLong) {
    const int64_t end = least(job.used_slots, first + kLong);
    for (int n = 0; n < 4; ++n) {
      V total = splat(0.0f);
      for (int64_t k = first; k < end; k += kShort) {
        V run = splat(0.0f);
        for (int64_t j = k; j < least(end, k + kShort); ++j) {
          run = add(run, load(job.dgates(block, j) + n * kLanes));
        }
        total = add(total, run);
      }
      store(to + n * kLanes, add(load(to + n * kLanes), total));
    }
  }
}

// Numbers the chunk's running (step, row) pairs and notes where their inputs stand.
inline void number_slots(BackwardState& job) {
  const BackwardArgs& args = job.args;
  const int64_t batch = args.shape.batch, input = args.shape.input, hidden = args.shape.hidden;
  int32_t next = 0;
  for (int64_t t = job.first_step; t <= job.last_step; ++t) {
    const float* h_before = t == 0 ? args.h0 : args.h + (t - 1) * batch * hidden;
    for (int64_t b = 0; b < batch; ++b) {
      const bool running = args.lengths == nullptr || t < args.lengths[b];
      job.space.slot[(t - job.first_step) * batch + b] = running ? next : -1;
      if (!running) continue;
      job.space.x_row[next] = args.x + (t * batch + b) * input;
      job.space.h_row[next] = h_before + b * hidden;
      ++next;
    }
  }
  job.used_slots = next;
}

template <typename Product>
void backward_pack_task(void* context, int block) {
  const auto& job = *static_cast<const BackwardJob<Product>*>(context);
  Product::pack_backward(job, block);
  const int64_t columns = job.args.shape.input + job.args.shape.hidden;
  float* dweights = job.space.dweights + block * columns * kBlock;
  for (int64_t i = 0; i < columns * kBlock; ++i) dweights[i] = 0.0f;
  for (int64_t i = 0; i < kBlock; ++i) job.space.dbias[block * kBlock + i] = 0.0f;
}

// The packed sums of one block, back in torch's order.
inline void unpack_block(const BackwardState& job, int block) {
  const BackwardArgs& args = job.args;
  const int64_t input = args.shape.input, hidden = args.shape.hidden, columns = input + hidden;
  const int lanes = block_lanes(hidden, block);
  const float* from = job.space.dweights + block * columns * kBlock;
  for (int64_t i = 0; i < kBlock; ++i) {
    if (i % kLanes >= lanes) continue;
    const int64_t gate = i / kLanes * hidden + block * kLanes + i % kLanes;
    for (int64_t k = 0; args.dw_ih != nullptr && k < input; ++k) {
      args.dw_ih[gate * input + k] = from[k * kBlock + i];
    }
    for (int64_t k = 0; args.dw_hh != nullptr && k < hidden; ++k) {
      args.dw_hh[gate * hidden + k] = from[(input + k) * kBlock + i];
    }
    const float db = job.space.dbias[block * kBlock + i];
    if (args.db_ih != nullptr) args.db_ih[gate] = db;
    if (args.db_hh != nullptr) args.db_hh[gate] = db;
  }
}

template <typename Product>
void unpack_task(void* context, int block) {
  unpack_block(*static_cast<const BackwardJob<Product>*>(context), block);
}

template <typename Product>
size_t backward_workspace(const LstmShape& shape, int workers) {
  Arena arena{nullptr};
  const BackwardSpace space = carve_backward(arena, shape, workers);
  Product::carve_backward(arena, shape, space, workers);
  return arena.used;
}

template <typename Product>
void lstm_backward(const BackwardArgs& args) {
  const LstmShape& shape = args.shape;
  Arena arena{static_cast<char*>(args.workspace)};
  const BackwardSpace space = carve_backward(arena, shape, args.workers.count);
  BackwardJob<Product> job{{args, space, static_cast<int>(least(args.workers.count, shape.batch))},
                           Product::carve_backward(arena, shape, space, args.workers.count)};
  const int blocks = static_cast<int>(block_count(shape.hidden));
  const int64_t padded = blocks * kLanes;
  for (int64_t i = 0; i < shape.batch * padded; ++i) space.dh[i] = space.dc[i] = 0.0f;
  for (int i = 0; i < args.workers.count; ++i) space.products[i] = 0;
  args.workers.run(blocks, backward_pack_task<Product>, &job);

  const bool weights = args.dw_ih != nullptr || args.dw_hh != nullptr || args.db_ih != nullptr ||
                       args.db_hh != nullptr;
  for (int64_t end = shape.steps; end > 0; end -= space.chunk_steps) {
    job.first_step = most(0, end - space.chunk_steps);
    job.last_step = end - 1;
    number_slots(job);
    args.workers.run(job.tasks, backward_rows_task<Product>, &job);
    if (weights) Product::weight_gradients(job);
  }

  if (weights) args.workers.run(blocks, unpack_task<Product>, &job);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t unit = 0; unit < shape.hidden; ++unit) {
      if (args.dh0 != nullptr) args.dh0[b * shape.hidden + unit] = space.dh[b * padded + unit];
      if (args.dc0 != nullptr) args.dc0[b * shape.hidden + unit] = space.dc[b * padded + unit];
    }
  }
  *args.recurrent_products = 0;
  for (int i = 0; i < job.tasks; ++i) *args.recurrent_products += space.products[i];
}

}  // namespace
