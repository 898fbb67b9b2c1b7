// Products in AMX tiles, floats split into three bf16 parts (amx_tile_product.inl). Strategy: a
// task splits its rows of x and h, or of gate gradients, once a step; weights are split once a
// pass; for weight gradients the chunk's x and h are split and transposed, its gate gradients split
// as they are. Row tiles have as few rows as cover the batch evenly, since a tile product costs one
// cycle a row. Limits: an infinity counts as the largest bf16, and as NaN in the backward pass.
// Columns are padded to 32. Measured with `hdetach bench --kernel cpu-amx,cpu-avx512`.
#pragma once

#include "kernels/cpu/amx_tile_product.inl"
#include "kernels/cpu/backward.inl"
#include "kernels/cpu/forward.inl"

namespace {

// A task's own row tiles: enough for its rows, apart from every other task's.
inline int64_t first_row_tile(Range range, int task) { return 2 * (range.begin / 32 + task); }
inline int64_t row_tile_count(int64_t batch, int workers) { return 2 * (batch / 32 + workers + 1); }

inline int64_t depth_tiles(int64_t depth) { return ceil_div(depth, kTileDepth); }

struct AmxProduct {
  struct ForwardSpace {
    int64_t depth;  // tiles over x and h side by side
    Tile* weights;  // [blocks][4 gates][depth][planes]
    Tile* rows;     // [row tiles][depth][planes]
    float* stage;   // [workers][depth * 32] one row of x and h
  };
  struct BackwardSpace {
    int64_t depth;         // tiles over the gate gradients of one row
    int64_t slot_depth;    // tiles over the slots of a chunk
    int64_t stage_stride;  // floats of x and h of one slot
    RowTiles columns_at;   // how the columns x and h stand in tiles
    Tile* w_hh;            // [column tiles, even][depth][planes]
    Tile* w_ih;            // likewise
    Tile* rows;            // [row tiles][depth][planes]
    Tile* columns;         // [column tiles][slot depth][planes] x and h, transposed
    Tile* dgates;          // [blocks][4 gates][slot depth][planes]
    float* stage;          // [slot depth][32][stage_stride]
  };
  using Forward = ForwardJob<AmxProduct>;
  using Backward = BackwardJob<AmxProduct>;

  static void end_task() { release_tiles(); }

  static ForwardSpace carve_forward(Arena& arena, const LstmShape& shape, int workers) {
    ForwardSpace space;
    space.depth = depth_tiles(shape.input + shape.hidden);
    const int64_t planes = space.depth * kTilePlanes;
    space.weights = arena.take<Tile>(block_count(shape.hidden) * 4 * planes);
    space.rows = arena.take<Tile>(row_tile_count(shape.batch, workers) * planes);
    space.stage = arena.take<float>(workers * space.depth * kTileDepth);
    return space;
  }

  // Sixteen units by sixteen k at a time, turned so that k runs down the tile.
  static void pack_forward(const ForwardArgs& args, const ForwardSpace& space, int64_t block) {
    const int64_t input = args.shape.input, hidden = args.shape.hidden;
    const int lanes = block_lanes(hidden, block);
    for (int64_t gate = 0; gate < 4; ++gate) {
      Tile* tiles = space.weights + (block * 4 + gate) * space.depth * kTilePlanes;
      alignas(64) float down[kTileDepth][16];  // 32 k by 16 units
      for (int64_t k = 0; k < space.depth * kTileDepth; k += 16) {
        __m512i w[16];
        for (int lane = 0; lane < 16; ++lane) {
          alignas(64) float value[16] = {};
          const int64_t unit = gate * hidden + block * kLanes + lane;
          for (int64_t j = k; lane < lanes && j < least(k + 16, input + hidden); ++j) {
            value[j - k] = j < input ? args.weights.w_ih[unit * input + j]
                                     : args.weights.w_hh[unit * hidden + j - input];
          }
          w[lane] = _mm512_load_si512(value);
        }
        transpose(w);
        for (int i = 0; i < 16; ++i) store(down[k % kTileDepth + i], float_of(w[i]));
        if (k % kTileDepth == 0) continue;
        Tile* planes = tiles + k / kTileDepth * kTilePlanes;
        for (int i = 0; i < 16; ++i)
          split(finite(load(down[i])), finite(load(down[i + 16])), planes, i);
      }
    }
  }

  static void forward_step(const Forward& job, int task, Range range, int64_t t,
                           const int32_t* rows, int64_t count) {
    const ForwardArgs& args = job.args;
    const int64_t input = args.shape.input, hidden = args.shape.hidden;
    const int64_t depth = job.product.depth, planes = depth * kTilePlanes;
    const RowTiles at = row_tiles(count);
    Tile* tiles = job.product.rows + first_row_tile(range, task) * planes;
    float* stage = job.product.stage + task * depth * kTileDepth;
    for (int64_t r = 0; r < count; ++r) {
      const float* x = args.x + (t * args.shape.batch + rows[r]) * input;
      const float* h = h_before(args, t) + rows[r] * hidden;
      for (int64_t k = 0; k < input; ++k) stage[k] = x[k];
      for (int64_t k = 0; k < hidden; ++k) stage[input + k] = h[k];
      for (int64_t k = input + hidden; k < depth * kTileDepth; ++k) stage[k] = 0.0f;
      for (int64_t d = 0; d < depth; ++d) {
        const float* from = stage + d * kTileDepth;
        split(finite(load(from)), finite(load(from + 16)),
              at.tile(tiles, r, planes) + d * kTilePlanes, at.row(r));
      }
    }
    configure_tiles(static_cast<int>(at.height));
    for (int64_t block = 0; block < block_count(hidden); ++block) {
      const Tile* w = job.product.weights + block * 4 * planes;
      for (int64_t pair = 0; pair < at.pairs; ++pair) {
        const Tile* a0 = tiles + 2 * pair * planes;
        alignas(64) TileSum sum[2][4];  // gates i f, then g o
        for (int64_t half = 0; half < 2; ++half) {
          const Tile* columns = w + 2 * half * planes;
          tile_product(a0, a0 + planes, columns, columns + planes, depth,
                       static_cast<int>(at.height), sum[half]);
        }
        at.for_rows(pair, count, [&](int64_t r, int tile, int m) {
          V gates[4];
          for (int gate = 0; gate < 4; ++gate) {
            gates[gate] = add(load(job.space.bias + block * kBlock + gate * kLanes),
                              load(sum[gate / 2][2 * tile + gate % 2][m]));
          }
          finish_forward(args, gates, t, rows[r], block);
        });
      }
    }
  }

  static BackwardSpace carve_backward(Arena& arena, const LstmShape& shape,
                                      const ::BackwardSpace& sweep, int workers) {
    const int64_t blocks = block_count(shape.hidden), columns = shape.input + shape.hidden;
    BackwardSpace space;
    space.depth = blocks * kBlock / kTileDepth;
    space.slot_depth = depth_tiles(sweep.slots);
    space.stage_stride = columns + 16;
    space.columns_at = row_tiles(columns);
    const int64_t planes = space.depth * kTilePlanes;
    space.w_hh = arena.take<Tile>(2 * ceil_div(shape.hidden, 32) * planes);
    space.w_ih = arena.take<Tile>(2 * ceil_div(shape.input, 32) * planes);
    space.rows = arena.take<Tile>(row_tile_count(shape.batch, workers) * planes);
    const int64_t slot_planes = space.slot_depth * kTilePlanes;
    space.columns = arena.take<Tile>(2 * space.columns_at.pairs * slot_planes);
    space.dgates = arena.take<Tile>(blocks * 4 * slot_planes);
    space.stage = arena.take<float>(space.slot_depth * kTileDepth * space.stage_stride);
    return space;
  }

  // Rows of w are already k by column: block, gate, lane, as in the gate gradients.
  static void pack_columns(const float* w, int64_t hidden, int64_t columns, int64_t block,
                           int64_t depth, Tile* to) {
    for (int64_t tile = 0; tile < 2 * ceil_div(columns, 32); ++tile) {
      const int width = static_cast<int>(most(0, least(16, columns - tile * 16)));
      const auto row = [&](int64_t i) {
        const int64_t unit = block * kLanes + i % kLanes;
        if (unit >= hidden || width == 0) return splat(0.0f);
        return load_first(w + (i / kLanes * hidden + unit) * columns + tile * 16, width);
      };
      for (int64_t half = 0; half < 2; ++half) {
        Tile* planes = to + (tile * depth + block * 2 + half) * kTilePlanes;
        for (int64_t i = 0; i < 16; ++i) {
          split(finite_or_nan(row(half * kTileDepth + i)),
                finite_or_nan(row(half * kTileDepth + 16 + i)), planes, i);
        }
      }
    }
  }

  static void pack_backward(const Backward& job, int64_t block) {
    const LstmShape& shape = job.args.shape;
    const BackwardSpace& space = job.product;
    pack_columns(job.args.weights.w_hh, shape.hidden, shape.hidden, block, space.depth, space.w_hh);
    if (job.args.dx == nullptr) return;
    pack_columns(job.args.weights.w_ih, shape.hidden, shape.input, block, space.depth, space.w_ih);
  }

  // Calls put(row, column, vector) with dgates * w for every row in the list.
  template <typename Put>
  static void columns_product(const Backward& job, int task, Range range, int64_t t,
                              const int32_t* rows, int64_t count, const Tile* w, int64_t columns,
                              const Put& put) {
    if (count == 0) return;
    const int64_t depth = job.product.depth, planes = depth * kTilePlanes;
    const RowTiles at = row_tiles(count);
    Tile* tiles = job.product.rows + first_row_tile(range, task) * planes;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t slot = job.slot(t, rows[r]);
      for (int64_t d = 0; d < depth; ++d) {
        const float* from = job.dgates(d / 2, slot) + d % 2 * kTileDepth;
        split(finite_or_nan(load(from)), finite_or_nan(load(from + 16)),
              at.tile(tiles, r, planes) + d * kTilePlanes, at.row(r));
      }
    }
    configure_tiles(static_cast<int>(at.height));
    for (int64_t first = 0; first < columns; first += 32) {
      const Tile* b0 = w + first / 16 * planes;
      for (int64_t pair = 0; pair < at.pairs; ++pair) {
        const Tile* a0 = tiles + 2 * pair * planes;
        alignas(64) TileSum sum[4];
        tile_product(a0, a0 + planes, b0, b0 + planes, depth, static_cast<int>(at.height), sum);
        at.for_rows(pair, count, [&](int64_t r, int tile, int m) {
          put(rows[r], first, load(sum[2 * tile][m]));
          if (first + 16 < columns) put(rows[r], first + 16, load(sum[2 * tile + 1][m]));
        });
      }
    }
  }

  template <typename Put>
  static void hidden_product(const Backward& job, int task, Range range, int64_t t,
                             const int32_t* rows, int64_t count, const Put& put) {
    columns_product(job, task, range, t, rows, count, job.product.w_hh, job.args.shape.hidden, put);
  }

  template <typename Put>
  static void input_product(const Backward& job, int task, Range range, int64_t t,
                            const int32_t* rows, int64_t count, const Put& put) {
    columns_product(job, task, range, t, rows, count, job.product.w_ih, job.args.shape.input, put);
  }

  // x and h of 32 slots, transposed: column tiles whose depth is the slot.
  static void columns_of(const Backward& job, int64_t d) {
    const int64_t input = job.args.shape.input, hidden = job.args.shape.hidden;
    const BackwardSpace& space = job.product;
    float* stage = space.stage + d * kTileDepth * space.stage_stride;
    for (int64_t i = 0; i < kTileDepth; ++i) {
      float* to = stage + i * space.stage_stride;
      const int64_t slot = d * kTileDepth + i;
      const bool used = slot < job.used_slots;
      for (int64_t k = 0; k < input; ++k) to[k] = used ? job.space.x_row[slot][k] : 0.0f;
      for (int64_t k = 0; k < hidden; ++k) to[input + k] = used ? job.space.h_row[slot][k] : 0.0f;
      for (int64_t k = input + hidden; k < space.stage_stride; ++k) to[k] = 0.0f;
    }
    for (int64_t tile = 0; tile < 2 * space.columns_at.pairs; ++tile) {
      const int64_t column = tile * space.columns_at.height;
      if (column >= input + hidden) continue;  // its sums are never read
      __m512i across[kTilePlanes][16];
      for (int64_t i = 0; i < 16; ++i) {
        __m512i parts[kTilePlanes];
        take_parts(finite_or_nan(load(stage + i * space.stage_stride + column)),
                   finite_or_nan(load(stage + (i + 16) * space.stage_stride + column)), parts);
        for (int p = 0; p < kTilePlanes; ++p) across[p][i] = parts[p];
      }
      for (int p = 0; p < kTilePlanes; ++p) {
        transpose(across[p]);
        Tile& to = space.columns[(tile * space.slot_depth + d) * kTilePlanes + p];
        for (int i = 0; i < 16; ++i) _mm512_store_si512(to.value[i], across[p][i]);
      }
    }
  }

  static void dgates_of(const Backward& job, int64_t block) {
    const BackwardSpace& space = job.product;
    const auto row = [&](int64_t slot, int64_t gate) {
      return slot < job.used_slots ? load(job.dgates(block, slot) + gate * kLanes) : splat(0.0f);
    };
    const int64_t depth = depth_tiles(job.used_slots);
    for (int64_t gate = 0; gate < 4; ++gate) {
      Tile* tiles = space.dgates + (block * 4 + gate) * space.slot_depth * kTilePlanes;
      for (int64_t d = 0; d < depth; ++d) {
        for (int64_t i = 0; i < 16; ++i) {
          const int64_t slot = d * kTileDepth + i;
          split(finite_or_nan(row(slot, gate)), finite_or_nan(row(slot + 16, gate)),
                tiles + d * kTilePlanes, i);
        }
      }
    }
    bias_sums(job, block);
  }

  // dweights of part of the (block, column pair) grid.
  static void weights_part(const Backward& job, int task) {
    const BackwardSpace& space = job.product;
    const int64_t columns = job.args.shape.input + job.args.shape.hidden;
    const int64_t pairs = space.columns_at.pairs, height = space.columns_at.height;
    const int64_t planes = space.slot_depth * kTilePlanes;
    const Range mine =
        part(block_count(job.args.shape.hidden) * pairs, job.args.workers.count, task);
    configure_tiles(static_cast<int>(height));
    for (int64_t index = mine.begin; index < mine.end; ++index) {
      const int64_t block = index / pairs, pair = index % pairs;
      const Tile* a0 = space.columns + 2 * pair * planes;
      for (int64_t half = 0; half < 2; ++half) {
        const Tile* b0 = space.dgates + (block * 4 + 2 * half) * planes;
        alignas(64) TileSum sum[4];
        tile_product(a0, a0 + planes, b0, b0 + planes, depth_tiles(job.used_slots),
                     static_cast<int>(height), sum);
        space.columns_at.for_rows(pair, columns, [&](int64_t column, int tile, int m) {
          float* to = job.space.dweights + (block * columns + column) * kBlock + half * 2 * kLanes;
          store(to, add(load(to), load(sum[2 * tile][m])));
          store(to + kLanes, add(load(to + kLanes), load(sum[2 * tile + 1][m])));
        });
      }
    }
    release_tiles();
  }

  static void weight_gradients(Backward& job) {
    const int blocks = static_cast<int>(block_count(job.args.shape.hidden));
    const int depth = static_cast<int>(depth_tiles(job.used_slots));
    job.args.workers.run(
        blocks + depth,
        [](void* context, int index) {
          const Backward& at = *static_cast<const Backward*>(context);
          const int64_t blocks = block_count(at.args.shape.hidden);
          if (index < blocks) return dgates_of(at, index);
          columns_of(at, index - blocks);
        },
        &job);
    job.args.workers.run(
        job.args.workers.count,
        [](void* context, int task) { weights_part(*static_cast<const Backward*>(context), task); },
        &job);
  }
};

}  // namespace
