// The inner product of the AMX kernel: two row tiles times two column tiles, each float in three
// bf16 parts. Of the nine products of parts the six that matter are made: first the five small ones
// over a run, then the large one on top, so that the small ones lose nothing.
#pragma once

#include "kernels/cpu/amx_split.inl"
#include "kernels/cpu/layout.inl"

namespace {

constexpr int64_t kTileDepth = 32;  // k a tile product covers
constexpr int64_t kTileRun = 8;     // tile products summed before they are added in memory

using TileSum = float[16][16];

// Small products of one pair of parts: every row tile times every column tile.
#define TILE_SQUARE()      \
  do {                     \
    TILE_PRODUCT(0, 4, 6); \
    TILE_PRODUCT(1, 4, 7); \
    TILE_PRODUCT(2, 5, 6); \
    TILE_PRODUCT(3, 5, 7); \
  } while (0)

#define TILE_ROWS(plane)                               \
  do {                                                 \
    TILE_LOAD(4, a0[k * kTilePlanes + (plane)].value); \
    TILE_LOAD(5, a1[k * kTilePlanes + (plane)].value); \
  } while (0)

#define TILE_COLUMNS(plane)                            \
  do {                                                 \
    TILE_LOAD(6, b0[k * kTilePlanes + (plane)].value); \
    TILE_LOAD(7, b1[k * kTilePlanes + (plane)].value); \
  } while (0)

// sum[2 * row tile + column tile] = rows * columns; each argument is [depth][planes] tiles.
inline void tile_product(const Tile* a0, const Tile* a1, const Tile* b0, const Tile* b1,
                         int64_t depth, int rows, TileSum (&sum)[4]) {
  for_tiles({0, depth}, kTileRun, [&](int64_t first, int64_t count) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t k = first; k < first + count; ++k) {
      TILE_ROWS(1);
      TILE_COLUMNS(1);
      TILE_SQUARE();
      TILE_COLUMNS(0);
      TILE_SQUARE();
      TILE_ROWS(2);
      TILE_SQUARE();
      TILE_ROWS(0);
      TILE_COLUMNS(1);
      TILE_SQUARE();
      TILE_COLUMNS(2);
      TILE_SQUARE();
    }
    for (int64_t k = first; k < first + count; ++k) {
      TILE_ROWS(0);
      TILE_COLUMNS(0);
      TILE_SQUARE();
    }
    if (first == 0) {
      TILE_STORE(0, sum[0]);
      TILE_STORE(1, sum[1]);
      TILE_STORE(2, sum[2]);
      TILE_STORE(3, sum[3]);
      return;
    }
    alignas(64) TileSum run[4];
    TILE_STORE(0, run[0]);
    TILE_STORE(1, run[1]);
    TILE_STORE(2, run[2]);
    TILE_STORE(3, run[3]);
    for (int i = 0; i < 4; ++i) {
      for (int m = 0; m < rows; ++m) store(sum[i][m], add(load(sum[i][m]), load(run[i][m])));
    }
  });
}

#undef TILE_SQUARE
#undef TILE_ROWS
#undef TILE_COLUMNS

// Rows in pairs of tiles: row r stands in tile r / height at r % height.
struct RowTiles {
  int64_t pairs, height;

  Tile* tile(Tile* tiles, int64_t r, int64_t planes) const {
    return tiles + static_cast<uint32_t>(r) / static_cast<uint32_t>(height) * planes;
  }
  int64_t row(int64_t r) const { return static_cast<uint32_t>(r) % static_cast<uint32_t>(height); }

  // Calls body(r, tile, row of tile) for the rows of one pair, up to `count` rows in all.
  template <typename Body>
  void for_rows(int64_t pair, int64_t count, const Body& body) const {
    for (int tile = 0; tile < 2; ++tile) {
      const int64_t first = (2 * pair + tile) * height;
      for (int m = 0; m < least(height, count - first); ++m) body(first + m, tile, m);
    }
  }
};
inline RowTiles row_tiles(int64_t rows) {
  const int64_t pairs = ceil_div(rows, 32);
  return {pairs, ceil_div(rows, 2 * pairs)};
}

}  // namespace
