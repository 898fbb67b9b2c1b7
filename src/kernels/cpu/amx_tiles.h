// The eight tile registers of AMX. With HDETACH_AMX_EMULATED the same operations run in plain C++,
// so that the kernel above them is tested on machines without AMX.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace {

// 16 rows of 64 bytes: 32 bf16 of an A row, or 16 columns of bf16 pairs of a B row.
struct alignas(64) Tile {
  uint16_t value[16][32];
};

constexpr int kTilePlanes = 3;  // bf16 parts that add up to one float

}  // namespace

// Tile register numbers must be literals in the instruction, hence macros.
#ifdef HDETACH_AMX_EMULATED

#include <cstring>

namespace {

struct TileFile {
  alignas(64) unsigned char bytes[8][16][64];
  int rows;
};
thread_local TileFile tile_file;

inline int tile_rows(int t) { return t == 6 || t == 7 ? 16 : tile_file.rows; }
inline void emulate_load(int t, const void* from, int64_t stride) {
  for (int r = 0; r < tile_rows(t); ++r) {
    std::memcpy(tile_file.bytes[t][r], static_cast<const char*>(from) + r * stride, 64);
  }
}
inline void emulate_store(int t, void* to, int64_t stride) {
  for (int r = 0; r < tile_rows(t); ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, tile_file.bytes[t][r], 64);
  }
}
inline float widen(const unsigned char* from) {
  uint16_t half;
  std::memcpy(&half, from, sizeof(half));
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline void emulate_product(int c, int a, int b) {
  for (int m = 0; m < tile_file.rows; ++m) {
    float sum[16];
    std::memcpy(sum, tile_file.bytes[c][m], 64);
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < 16; ++n) {
        const unsigned char* left = tile_file.bytes[a][m] + 4 * k;
        const unsigned char* right = tile_file.bytes[b][k] + 4 * n;
        sum[n] += widen(left) * widen(right);
        sum[n] += widen(left + 2) * widen(right + 2);
      }
    }
    std::memcpy(tile_file.bytes[c][m], sum, 64);
  }
}
inline void configure_tiles(int rows) { tile_file.rows = rows; }
inline void release_tiles() {}

}  // namespace

#define TILE_ZERO(t) std::memset(tile_file.bytes[t], 0, sizeof(tile_file.bytes[t]))
#define TILE_LOAD(t, from) emulate_load(t, from, 64)
#define TILE_STORE(t, to) emulate_store(t, to, 64)
#define TILE_PRODUCT(c, a, b) emulate_product(c, a, b)

#else

namespace {

// Tiles 0..3 accumulate, 4 and 5 hold A (`rows` rows each), 6 and 7 hold B.
inline void configure_tiles(int rows) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {};
  } config;
  for (int t = 0; t < 6; ++t) config.rows[t] = static_cast<uint8_t>(rows);
  config.rows[6] = config.rows[7] = 16;
  _tile_loadconfig(&config);
}
inline void release_tiles() { _tile_release(); }

}  // namespace

#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, from) _tile_loadd(t, from, 64)
#define TILE_STORE(t, to) _tile_stored(t, to, 64)
#define TILE_PRODUCT(c, a, b) _tile_dpbf16ps(c, a, b)

#endif
