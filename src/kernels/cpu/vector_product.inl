// Products in vector registers. Strategy: w_ih and w_hh are packed side by side as
// [block][k][4 gates][lanes], so the four gates of one block of units stay in registers from
// product to activation, and the packed weights (256 KB at H=128) stay in second-level cache.
// Gate gradients are multiplied with column panels of w_hh, and weight gradients are outer
// products over the chunk. Measured with `hdetach bench copy300 mnist caption`.
#pragma once

#include "kernels/cpu/backward.inl"
#include "kernels/cpu/forward.inl"
#include "kernels/cpu/product.inl"

namespace {

// to[k][gate][lane] = w[gate * H + block * lanes + lane][k], zero past the last unit.
inline void pack_block(const float* w, int64_t hidden, int64_t depth, int64_t block, float* to) {
  const int lanes = block_lanes(hidden, block);
  for (int gate = 0; gate < 4; ++gate) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float* from = w + (gate * hidden + block * kLanes + lane) * depth;
      float* out = to + gate * kLanes + lane;
      for (int64_t k = 0; k < depth; ++k) out[k * kBlock] = lane < lanes ? from[k] : 0.0f;
    }
  }
}

template <int Rows>
inline void forward_tile(const ForwardArgs& args, const float* panel, const float* bias_block,
                         int64_t t, int64_t block, const int32_t* rows) {
  const int64_t batch = args.shape.batch, input = args.shape.input, hidden = args.shape.hidden;

  constexpr int64_t kFewInputs = 32;  // these end the last run of the hidden units

  V acc[Rows][4];
  Totals<Rows, 4> totals;
  clear(acc);
  const float* row[Rows];
  for (int m = 0; m < Rows; ++m) row[m] = h_before(args, t) + rows[m] * hidden;
  accumulate_runs(acc, totals, row, panel + input * kBlock, hidden);
  if (input > kFewInputs) end_run(acc, totals);
  for (int m = 0; m < Rows; ++m) row[m] = args.x + (t * batch + rows[m]) * input;
  accumulate_runs(acc, totals, row, panel, input);
  add_totals(acc, totals);
  for (int n = 0; n < 4; ++n) {
    const V bias = load(bias_block + n * kLanes);
    for (int m = 0; m < Rows; ++m) acc[m][n] = add(acc[m][n], bias);
  }
  for (int m = 0; m < Rows; ++m) finish_forward(args, acc[m], t, rows[m], block);
}

// Rows of the panel follow the gate gradients' order: block, gate, lane.
inline void pack_columns(const float* w, int64_t hidden, int64_t columns, int64_t block,
                         float* to) {
  const int64_t depth = block_count(hidden) * kBlock;
  for (int64_t first = 0; first < columns; first += kBlock) {
    const int64_t width = least(kBlock, ceil_div(columns - first, kLanes) * kLanes);
    float* panel = to + first * depth + block * kBlock * width;
    for (int64_t i = 0; i < kBlock; ++i) {
      const int64_t unit = block * kLanes + i % kLanes;
      const float* from = w + (i / kLanes * hidden + unit) * columns;
      for (int64_t j = 0; j < width; ++j) {
        panel[i * width + j] = unit < hidden && first + j < columns ? from[first + j] : 0.0f;
      }
    }
  }
}

// acc = dgates of `Rows` rows times a panel of `Cols` vectors of columns.
template <int Rows, int Cols>
inline void columns_tile(const BackwardState& job, int64_t t, const int32_t* rows,
                         const float* panel, V (&acc)[Rows][Cols]) {
  Totals<Rows, Cols> totals;
  clear(acc);
  const float* row[Rows];
  for (int m = 0; m < Rows; ++m) row[m] = job.dgates(0, job.slot(t, rows[m]));
  for (int64_t block = 0; block < block_count(job.args.shape.hidden); ++block) {
    if (block > 0 && block * kBlock % kRun == 0) end_run(acc, totals);
    accumulate(acc, row, panel, kBlock);
    panel += kBlock * Cols * kLanes;
    for (int m = 0; m < Rows; ++m) row[m] += job.space.slots * kBlock;
  }
  add_totals(acc, totals);
}

// Calls put(row, column, vector) with dgates * w for every row in the list.
template <typename Put>
inline void columns_product(const BackwardState& job, int64_t t, const int32_t* rows, int64_t count,
                            const float* packed, int64_t columns, const Put& put) {
  const int64_t depth = block_count(job.args.shape.hidden) * kBlock;
  for (int64_t first = 0; first < columns; first += kBlock) {
    with_constant<4>(least(4, ceil_div(columns - first, kLanes)), [&](auto cols) {
      for_tiles({0, count}, kTileRows, [&](int64_t first_row, int64_t tile_rows) {
        with_constant<kTileRows>(tile_rows, [&](auto tile) {
          V acc[tile.value][cols.value];
          columns_tile(job, t, rows + first_row, packed + first * depth, acc);
          for (int m = 0; m < tile.value; ++m) {
            for (int n = 0; n < cols.value; ++n) {
              put(rows[first_row + m], first + n * kLanes, acc[m][n]);
            }
          }
        });
      });
    });
  }
}

// dweights[block][column...] += the chunk's outer products, a run at a time.
template <int Rows>
inline void weight_tile(const float* const* row, int64_t column, const float* panel, int64_t depth,
                        float* to) {
  V acc[Rows][4];
  clear(acc);
  accumulate_outer(acc, row, column, panel, depth);
  for (int m = 0; m < Rows; ++m) {
    for (int n = 0; n < 4; ++n) {
      float* sum = to + m * kBlock + n * kLanes;
      store(sum, add(load(sum), acc[m][n]));
    }
  }
}

// Columns of one block: the inputs, then the hidden units. Tasks split blocks * columns evenly.
inline void weights_part(const BackwardState& job, int task) {
  const BackwardSpace& space = job.space;
  const int64_t input = job.args.shape.input, columns = input + job.args.shape.hidden;
  const int64_t blocks = block_count(job.args.shape.hidden);
  const Range mine = part(blocks * columns, job.args.workers.count, task);
  for (int64_t block = mine.begin / columns; block * columns < mine.end; ++block) {
    const Range range{most(0, mine.begin - block * columns),
                      least(columns, mine.end - block * columns)};
    if (range.begin == 0) bias_sums(job, block);
    for (int64_t k = 0; k < job.used_slots; k += kRun) {
      const int64_t depth = least(kRun, job.used_slots - k);
      const float* panel = job.dgates(block, k);
      float* to = space.dweights + block * columns * kBlock;
      const auto tiles = [&](Range part_range, const float* const* row, int64_t shift) {
        for_tiles(part_range, kTileRows, [&](int64_t column, int64_t tile_rows) {
          with_constant<kTileRows>(tile_rows, [&](auto tile) {
            weight_tile<tile.value>(row + k, column - shift, panel, depth, to + column * kBlock);
          });
        });
      };
      tiles({range.begin, most(range.begin, least(range.end, input))}, space.x_row, 0);
      tiles({least(range.end, most(range.begin, input)), range.end}, space.h_row, input);
    }
  }
}

struct VectorProduct {
  struct ForwardSpace {
    float* weights;  // [blocks][I + H][4][lanes]
  };
  struct BackwardSpace {
    float* w_hh;  // [column panels][blocks * 4 * lanes][up to 4 * lanes]
    float* w_ih;  // likewise
  };

  static void end_task() {}

  static ForwardSpace carve_forward(Arena& arena, const LstmShape& shape, int) {
    return {arena.take<float>(block_count(shape.hidden) * (shape.input + shape.hidden) * kBlock)};
  }

  static void pack_forward(const ForwardArgs& args, const ForwardSpace& space, int64_t block) {
    const int64_t input = args.shape.input, hidden = args.shape.hidden;
    float* to = space.weights + block * (input + hidden) * kBlock;
    pack_block(args.weights.w_ih, hidden, input, block, to);
    pack_block(args.weights.w_hh, hidden, hidden, block, to + input * kBlock);
  }

  static void forward_step(const ForwardJob<VectorProduct>& job, int, Range, int64_t t,
                           const int32_t* rows, int64_t count) {
    const LstmShape& shape = job.args.shape;
    for (int64_t block = 0; block < block_count(shape.hidden); ++block) {
      const float* panel = job.product.weights + block * (shape.input + shape.hidden) * kBlock;
      for_tiles({0, count}, kTileRows, [&](int64_t first, int64_t tile_rows) {
        with_constant<kTileRows>(tile_rows, [&](auto tile) {
          forward_tile<tile.value>(job.args, panel, job.space.bias + block * kBlock, t, block,
                                   rows + first);
        });
      });
    }
  }

  static BackwardSpace carve_backward(Arena& arena, const LstmShape& shape, const ::BackwardSpace&,
                                      int) {
    const int64_t depth = block_count(shape.hidden) * kBlock;
    BackwardSpace space;
    space.w_hh = arena.take<float>(block_count(shape.hidden) * kLanes * depth);
    space.w_ih = arena.take<float>(block_count(shape.input) * kLanes * depth);
    return space;
  }

  static void pack_backward(const BackwardJob<VectorProduct>& job, int64_t block) {
    const LstmShape& shape = job.args.shape;
    pack_columns(job.args.weights.w_hh, shape.hidden, shape.hidden, block, job.product.w_hh);
    if (job.args.dx == nullptr) return;
    pack_columns(job.args.weights.w_ih, shape.hidden, shape.input, block, job.product.w_ih);
  }

  template <typename Put>
  static void hidden_product(const BackwardJob<VectorProduct>& job, int, Range, int64_t t,
                             const int32_t* rows, int64_t count, const Put& put) {
    columns_product(job, t, rows, count, job.product.w_hh, job.args.shape.hidden, put);
  }

  template <typename Put>
  static void input_product(const BackwardJob<VectorProduct>& job, int, Range, int64_t t,
                            const int32_t* rows, int64_t count, const Put& put) {
    columns_product(job, t, rows, count, job.product.w_ih, job.args.shape.input, put);
  }

  static void weight_gradients(BackwardJob<VectorProduct>& job) {
    job.args.workers.run(
        job.args.workers.count,
        [](void* context, int task) {
          weights_part(*static_cast<const BackwardJob<VectorProduct>*>(context), task);
        },
        &job);
  }
};

}  // namespace
